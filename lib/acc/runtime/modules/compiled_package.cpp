// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_package.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/zip_archive.hpp"

namespace acc::detail {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::string_view kDescription = "/data/extra/acc.json";
constexpr std::string_view kDescriptionChecksum = "/data/extra/acc.json.crc32";
constexpr std::string_view kWeights = "/data/extra/weights.safetensors";

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 10> kTypes = {{
    {"float32", at::kFloat},
    {"float64", at::kDouble},
    {"float16", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"int16", at::kShort},
    {"int8", at::kChar},
    {"uint8", at::kByte},
    {"bool", at::kBool},
}};

[[noreturn]] void refuse_package(std::string what) {
  throw Error({.kind = ErrorKind::config,
               .what = std::move(what),
               .hint = "acc compile MODULE:FACTORY --output FILE.pt2 writes one"});
}

at::ScalarType type_called(std::string_view name) {
  const auto* type = std::ranges::find(kTypes, name, [](const auto& pair) { return pair.first; });
  if (type == kTypes.end()) refuse_package(fmt::format("has inputs of the unknown type '{}'", shorten(name)));
  return type->second;
}

std::string type_name(at::ScalarType type) {
  const auto* name = std::ranges::find(kTypes, type, [](const auto& pair) { return pair.second; });
  return name == kTypes.end() ? c10::toString(type) : std::string(name->first);
}

std::optional<std::int64_t> size_in(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::int64_t>());
}

CompiledInput input_in(const json& value) {
  CompiledInput input{.type = type_called(value.at("dtype").get<std::string>())};
  std::ranges::transform(value.at("shape"), std::back_inserter(input.shape), size_in);
  return input;
}

CompiledLibraryDescription library_in(const json& value) {
  return {
      .constants = value.at("constants"), .gradients = value.at("gradients"), .checks = value.at("checks")};
}

CompiledPackage package_in(const json& value) {
  if (value.at("format") != kFormat)
    refuse_package(
        fmt::format("is of format {}, and this acc reads {}", shorten(value.at("format").dump()), kFormat));
  CompiledPackage package{.checksum = value.at("checksum"),
                          .model = value.at("model"),
                          .torch = value.at("torch"),
                          .precision = value.at("precision") == "bf16" ? at::kBFloat16 : at::kFloat,
                          .machine = value.at("machine"),
                          .processor = value.at("processor"),
                          .smallest_batch = size_in(value.at("smallest_batch")),
                          .buffers = value.at("buffers"),
                          .layers = value.at("layers"),
                          .groups = value.at("groups"),
                          .training = library_in(value.at("libraries").at("training")),
                          .evaluation = library_in(value.at("libraries").at("evaluation"))};
  std::ranges::transform(value.at("inputs"), std::back_inserter(package.inputs), input_in);
  for (const json& parameter : value.at("parameters"))
    package.parameters.push_back({parameter.at(0), parameter.at(1)});
  return package;
}

// The file whose name in the archive ends so, for its folder is called as the package was.
std::string_view entry(const ZipEntries& entries, std::string_view ending) {
  for (const auto& [name, content] : entries)
    if (name.ends_with(ending) && content.data() != nullptr) return content;
  refuse_package("is not a package of acc compile");
}

void require_tensor(const CompiledPackage& package, const std::string& name) {
  if (!package.tensors.contains(name)) refuse_package(fmt::format("lacks the tensor '{}'", shorten(name)));
}

void require_tensors(const CompiledPackage& package) {
  for (const CompiledPackage::Parameter& parameter : package.parameters)
    require_tensor(package, parameter.name);
  for (const std::string& buffer : package.buffers) require_tensor(package, buffer);
  for (const CompiledLibraryDescription& library : {package.training, package.evaluation}) {
    for (const auto& [constant, name] : library.constants) require_tensor(package, name);
    for (const std::string& name : library.gradients) require_tensor(package, name);
  }
}

// In the order of the code, which is another one.
void require_gradients(const CompiledPackage& package) {
  std::vector<std::string> trained;
  for (const CompiledPackage::Parameter& parameter : package.parameters)
    if (parameter.trained) trained.push_back(parameter.name);
  std::vector<std::string> gradients = package.training.gradients;
  std::ranges::sort(trained);
  std::ranges::sort(gradients);
  if (gradients != trained || std::ranges::adjacent_find(trained) != trained.end())
    refuse_package("has not one gradient of each trained parameter");
}

std::uint32_t checksum_of(std::string_view bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(0, data, bytes.size()));
}

CompiledPackage read_mapped(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<MappedFile>(file);
  const ZipEntries entries = read_zip({mapped->data(), mapped->size()});
  const std::string_view description = entry(entries, kDescription);
  if (std::to_string(checksum_of(description)) != entry(entries, kDescriptionChecksum))
    refuse_package("is damaged: the description has another checksum");
  CompiledPackage package = parse_compiled_description(description);
  const std::string_view weights = entry(entries, kWeights);
  if (checksum_of(weights) != package.checksum)
    refuse_package("is damaged: the weights have another checksum");
  package.tensors = safetensors_in(mapped, weights, file).tensors;
  require_tensors(package);
  require_gradients(package);
  return package;
}

std::string_view minor_version(std::string_view version) {
  const std::size_t minor = version.find('.');
  return version.substr(0, version.find('.', minor == std::string_view::npos ? minor : minor + 1));
}

std::string shape_text(const CompiledInput& input) {
  const auto sizes = input.shape | std::views::transform([](const std::optional<std::int64_t>& size) {
                       return size ? std::to_string(*size) : std::string("batch");
                     });
  return fmt::format("[{}] of {}", fmt::join(sizes, ", "), type_name(input.type));
}

bool fits(const CompiledInput& input, const at::Tensor& tensor) {
  if (tensor.scalar_type() != input.type || tensor.dim() != std::ssize(input.shape)) return false;
  return std::ranges::equal(input.shape, tensor.sizes(),
                            [](const auto& size, std::int64_t given) { return !size || *size == given; });
}

void require_input(const CompiledInput& input, const at::Tensor& tensor, const std::string& where) {
  if (!tensor.defined()) throw Error({.what = "is undefined", .where = where});
  if (!tensor.device().is_cpu())
    throw Error({.what = fmt::format("is on {}, and the step was compiled for CPUs", tensor.device().str()),
                 .where = where});
  if (!fits(input, tensor)) {
    throw Error({.what = fmt::format("is [{}] of {}, and the step takes {}", fmt::join(tensor.sizes(), ", "),
                                     type_name(tensor.scalar_type()), shape_text(input)),
                 .where = where});
  }
  if (tensor.requires_grad()) {
    throw Error({.what = "requires a gradient, which a compiled step does not compute",
                 .where = where,
                 .hint = "compile both models as one, or detach() it"});
  }
}

void require_batch(std::int64_t size, std::optional<std::int64_t> batch, std::int64_t smallest,
                   const std::string& where) {
  if (batch && *batch != size)
    throw Error({.what = fmt::format("has {} samples, and the one before {}", size, *batch), .where = where});
  if (size >= smallest) return;
  throw Error({.what = fmt::format("has {} samples, and the model takes at least {}", size, smallest),
               .where = where,
               .hint = "a DataLoader with drop_last leaves out a smaller last batch"});
}

}  // namespace

CompiledPackage parse_compiled_description(std::string_view text) {
  try {
    if (is_deeply_nested(text)) refuse_package("is a damaged package: its description is nested too deeply");
    return package_in(json::parse(text));
  } catch (const json::exception&) {
    refuse_package("is a damaged package, or of another version of acc");
  }
}

CompiledPackage read_compiled_package(const std::filesystem::path& file) {
  try {
    return read_mapped(file);
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    if (problem.where.empty()) problem.where = file.string();
    throw Error(error.kind(), {std::move(problem)});
  }
}

CompiledHost CompiledHost::this_one() {
  CompiledHost host{.torch = TORCH_VERSION};
  utsname names{};
  if (::uname(&names) == 0) host.machine = names.machine;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; host.processor.empty() && std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(std::min(line.find(':') + 1, line.size())));
    host.processor.insert(std::istream_iterator<std::string>(words), {});
  }
  return host;
}

void require_host(const CompiledPackage& package, const CompiledHost& host,
                  const std::filesystem::path& file) {
  const auto refuse_host = [&](std::string what) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::move(what),
                 .where = file.string(),
                 .hint = "run acc compile on a machine of this kind, with the torch of this LibTorch"});
  };
  if (minor_version(package.torch) != minor_version(host.torch))
    refuse_host(fmt::format("was compiled by torch {}, and LibTorch is {}", package.torch, host.torch));
  if (package.machine != host.machine)
    refuse_host(fmt::format("was compiled for {}, and this machine is {}", package.machine, host.machine));
  std::vector<std::string> missing;
  std::ranges::set_difference(package.processor, host.processor, std::back_inserter(missing));
  if (!missing.empty())
    refuse_host(
        fmt::format("was compiled for a processor with {}, which this one lacks", fmt::join(missing, ", ")));
}

void require_inputs(const CompiledPackage& package, const std::vector<at::Tensor>& inputs,
                    const std::string& where) {
  if (inputs.size() != package.inputs.size()) {
    throw Error({.what = fmt::format("takes {} tensors (inputs, then targets), and was given {}",
                                     package.inputs.size(), inputs.size()),
                 .where = where});
  }
  std::optional<std::int64_t> batch;
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    const std::string name = fmt::format("{}, tensor {}", where, index + 1);
    const CompiledInput& input = package.inputs[index];
    require_input(input, inputs[index], name);
    if (input.shape.empty() || input.shape.front()) continue;
    require_batch(inputs[index].size(0), batch, package.smallest_batch.value_or(1), name);
    batch = inputs[index].size(0);
  }
}

}  // namespace acc::detail
