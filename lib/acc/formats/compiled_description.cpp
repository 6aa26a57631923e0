// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/compiled_description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/refusal.hpp"
#include "acc/formats/zip_archive.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr std::string_view kDescription = "/data/extra/acc.json";
constexpr std::string_view kDescriptionChecksum = "/data/extra/acc.json.crc32";
constexpr std::string_view kWeights = "/data/extra/weights.safetensors";

[[noreturn]] void refuse_package(const std::string& what) {
  refuse(what, "acc compile MODULE:FACTORY --output FILE.pt2 writes one");
}

[[noreturn]] void refuse_damage() {
  refuse_package("is a damaged package, or of another version of acc");
}

std::optional<std::int64_t> size_in(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::int64_t>());
}

const TorchDtype* dtype_called(const std::string& name) {
  const auto* row = std::ranges::find(kTorchDtypes, name, &TorchDtype::name);
  if (row == kTorchDtypes.end())
    refuse_package(fmt::format("has inputs of the unknown type '{}'", shorten(name)));
  return row;
}

CompiledInput input_in(const Json& value) {
  CompiledInput input{.dtype = dtype_called(value.at("dtype"))};
  std::ranges::transform(value.at("shape"), std::back_inserter(input.shape), size_in);
  return input;
}

CompiledLibraryDescription library_in(const Json& value) {
  return {
      .constants = value.at("constants"), .gradients = value.at("gradients"), .checks = value.at("checks")};
}

CompiledDescription description_in(const Json& value) {
  if (value.at("format") != kFormat)
    refuse_package(
        fmt::format("is of format {}, and this acc reads {}", shorten(value.at("format").dump()), kFormat));
  CompiledDescription description{.checksum = value.at("checksum"),
                                  .model = value.at("model"),
                                  .torch = value.at("torch"),
                                  .is_bf16 = value.at("precision") == "bf16",
                                  .machine = value.at("machine"),
                                  .processor = value.at("processor"),
                                  .smallest_batch = size_in(value.at("smallest_batch")),
                                  .buffers = value.at("buffers"),
                                  .layers = value.at("layers"),
                                  .groups = value.at("groups"),
                                  .training = library_in(value.at("libraries").at("training")),
                                  .evaluation = library_in(value.at("libraries").at("evaluation"))};
  std::ranges::transform(value.at("inputs"), std::back_inserter(description.inputs), input_in);
  for (const Json& parameter : value.at("parameters"))
    description.parameters.push_back({parameter.at(0), parameter.at(1)});
  return description;
}

// The file whose name in the archive ends so, for its folder is called as the package was.
std::string_view entry(const ZipEntries& entries, std::string_view ending) {
  for (const auto& [name, content] : entries)
    if (name.ends_with(ending) && content.data() != nullptr) return content;
  refuse_package("is not a package of acc compile");
}

// In the order of the code, which is another one.
void require_gradients(const CompiledDescription& description) {
  std::vector<std::string> trained;
  for (const CompiledParameter& parameter : description.parameters)
    if (parameter.trained) trained.push_back(parameter.name);
  std::vector<std::string> gradients = description.training.gradients;
  std::ranges::sort(trained);
  std::ranges::sort(gradients);
  if (gradients != trained || std::ranges::adjacent_find(trained) != trained.end())
    refuse_package("has not one gradient of each trained parameter");
}

}  // namespace

CompiledPackageFiles find_compiled_files(std::string_view archive) {
  const ZipEntries entries = read_zip(archive);
  return {.description = entry(entries, kDescription),
          .checksum_of_description = entry(entries, kDescriptionChecksum),
          .weights = entry(entries, kWeights)};
}

CompiledDescription parse_compiled_description(std::string_view text) {
  if (is_deeply_nested(text)) refuse_package("is a damaged package: its description is nested too deeply");
  try {
    return description_in(Json::parse(text));
  } catch (const Json::exception&) {
    refuse_damage();
  }
}

void require_tensors(const CompiledDescription& description, const std::vector<TensorInfo>& tensors) {
  std::set<std::string_view> names;
  for (const TensorInfo& tensor : tensors) names.insert(tensor.name);
  const auto require_there = [&](const std::string& name) {
    if (!names.contains(name)) refuse_package(fmt::format("lacks the tensor '{}'", shorten(name)));
  };
  for (const CompiledParameter& parameter : description.parameters) require_there(parameter.name);
  for (const std::string& buffer : description.buffers) require_there(buffer);
  for (const CompiledLibraryDescription* library : {&description.training, &description.evaluation}) {
    for (const auto& [constant, name] : library->constants) require_there(name);
    for (const std::string& name : library->gradients) require_there(name);
  }
  require_gradients(description);
}

}  // namespace acc
