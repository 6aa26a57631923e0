// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_package.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <sstream>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/refusal.hpp"
#include "acc/formats/safetensors.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc::detail {
namespace {

[[noreturn]] void refuse_damage(const std::string& what) {
  refuse("is damaged: " + what, "acc compile MODULE:FACTORY --output FILE.pt2 writes one");
}

std::string type_name(at::ScalarType type) {
  const auto* row = std::ranges::find(kScalarTypes, type);
  if (row == kScalarTypes.end()) return c10::toString(type);
  return std::string(kTorchDtypes.at(static_cast<std::size_t>(row - kScalarTypes.begin())).name);
}

std::uint32_t checksum_of(std::string_view bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(0, data, bytes.size()));
}

CompiledPackage read_mapped(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<MappedFile>(file);
  const CompiledPackageFiles files = find_compiled_files({mapped->data(), mapped->size()});
  if (std::to_string(checksum_of(files.description)) != files.checksum_of_description)
    refuse_damage("the description has another checksum");
  CompiledPackage package{parse_compiled_description(files.description)};
  if (checksum_of(files.weights) != package.checksum) refuse_damage("the weights have another checksum");
  require_tensors(package, parse_safetensors_header(files.weights, file).tensors);
  package.tensors = safetensors_in(mapped, files.weights, file).tensors;
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
  return fmt::format("[{}] of {}", fmt::join(sizes, ", "), input.dtype->name);
}

bool fits(const CompiledInput& input, const at::Tensor& tensor) {
  if (tensor.scalar_type() != scalar_type_of(*input.dtype) || tensor.dim() != std::ssize(input.shape))
    return false;
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

void require_host(const CompiledDescription& package, const CompiledHost& host,
                  const std::filesystem::path& file) {
  const auto refuse_host = [&](std::string what) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::move(what),
                 .where = file.string(),
                 .hint = "run acc compile on a machine of this kind, with the torch of this LibTorch"});
  };
  if (minor_version(package.torch) != minor_version(host.torch))
    refuse_host(
        fmt::format("was compiled by torch {}, and LibTorch is {}", shorten(package.torch), host.torch));
  if (package.machine != host.machine)
    refuse_host(
        fmt::format("was compiled for {}, and this machine is {}", shorten(package.machine), host.machine));
  std::vector<std::string> missing;
  std::ranges::set_difference(package.processor, host.processor, std::back_inserter(missing));
  if (!missing.empty())
    refuse_host(fmt::format("was compiled for a processor with {}, which this one lacks",
                            shorten(fmt::format("{}", fmt::join(missing, ", ")))));
}

void require_inputs(const CompiledDescription& package, const std::vector<at::Tensor>& inputs,
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
