// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/compiled_description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/json_number.hpp"
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

// Without conversions, which the library does silently.
template <std::integral Number>
Number number_in(const Json& value) {
  if (const auto number = whole_number<Number>(value); number && std::cmp_greater_equal(*number, 0))
    return *number;
  refuse_damage();
}

std::optional<std::int64_t> size_in(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(number_in<std::int64_t>(value));
}

const TorchDtype* dtype_called(const std::string& name) {
  const auto* row = std::ranges::find(kTorchDtypes, name, &TorchDtype::name);
  if (row == kTorchDtypes.end())
    refuse_package(fmt::format("has inputs of the unknown type '{}'", shorten(name)));
  return row;
}

bool is_bf16(const std::string& precision) {
  if (precision != "no" && precision != "bf16")
    refuse_package(fmt::format("was compiled for the unknown precision '{}'", shorten(precision)));
  return precision == "bf16";
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
  CompiledDescription description{.checksum = number_in<std::uint32_t>(value.at("checksum")),
                                  .model = value.at("model"),
                                  .torch = value.at("torch"),
                                  .is_bf16 = is_bf16(value.at("precision")),
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

// As LibTorch asks for the names of layers and tensors. The layers of a name are made by recursion.
void require_name(const std::string& name) {
  constexpr std::ptrdiff_t kMaxLayers = 100;
  const bool has_empty_part =
      name.empty() || name.front() == '.' || name.back() == '.' || name.find("..") != std::string::npos;
  if (has_empty_part || std::ranges::count(name, '.') > kMaxLayers)
    refuse_package(fmt::format("has a tensor of the impossible name '{}'", shorten(name)));
}

void require_names(const CompiledDescription& description) {
  std::set<std::string_view> names;
  const auto add = [&](const std::string& name) {
    require_name(name);
    if (!names.insert(name).second) refuse_package(fmt::format("has the tensor '{}' twice", shorten(name)));
  };
  for (const CompiledParameter& parameter : description.parameters) add(parameter.name);
  for (const std::string& buffer : description.buffers) add(buffer);
}

void require_groups(const CompiledDescription& description) {
  std::set<std::string_view> parameters;
  for (const CompiledParameter& parameter : description.parameters) parameters.insert(parameter.name);
  for (const auto& [group, names] : description.groups) {
    for (const std::string& name : names)
      if (!parameters.contains(name))
        refuse_package(fmt::format("has '{}' in a group, which is not a parameter", shorten(name)));
  }
}

// The file whose name in the archive ends so, for its folder is called as the package was.
std::string_view entry(const ZipEntries& entries, std::string_view ending) {
  for (const auto& [name, content] : entries)
    if (name.ends_with(ending) && content.data() != nullptr) return content;
  refuse_package("is not a package of acc compile");
}

// As in C++ only these may require a gradient.
bool has_fractions(const std::string& dtype) {
  return dtype.starts_with('F') || dtype.starts_with('C') || dtype == "BF16";
}

// In the order of the code, which is another one.
void require_gradients(const CompiledDescription& description) {
  std::vector<std::string> trained;
  for (const CompiledParameter& parameter : description.parameters)
    if (parameter.trained) trained.push_back(parameter.name);
  std::vector<std::string> gradients = description.training.gradients;
  std::ranges::sort(trained);
  std::ranges::sort(gradients);
  if (gradients != trained) refuse_package("has not one gradient of each trained parameter");
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
    CompiledDescription description = description_in(Json::parse(text));
    require_names(description);
    require_groups(description);
    return description;
  } catch (const Json::exception&) {
    refuse_damage();
  }
}

void require_tensors(const CompiledDescription& description, const std::vector<TensorInfo>& tensors) {
  std::map<std::string_view, const TensorInfo*> by_name;
  for (const TensorInfo& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  const auto find = [&](const std::string& name) -> const TensorInfo& {
    const auto tensor = by_name.find(name);
    if (tensor == by_name.end()) refuse_package(fmt::format("lacks the tensor '{}'", shorten(name)));
    return *tensor->second;
  };
  for (const CompiledParameter& parameter : description.parameters) {
    if (!has_fractions(find(parameter.name).dtype) && parameter.trained)
      refuse_package(fmt::format("trains '{}', whose numbers are whole", shorten(parameter.name)));
  }
  for (const std::string& buffer : description.buffers) find(buffer);
  for (const CompiledLibraryDescription* library : {&description.training, &description.evaluation}) {
    for (const auto& [constant, name] : library->constants) find(name);
    for (const std::string& name : library->gradients) find(name);
  }
  require_gradients(description);
}

}  // namespace acc
