// SPDX-License-Identifier: Apache-2.0
// Packages of acc compile, which are archives, and the description and the weights within, also without an
// archive, with a null character between: every tensor that is named is there, and a module can have it.
#include <algorithm>

#include "acc/formats/compiled_description.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::CompiledDescription;
using acc::TensorInfo;

void check_description(const CompiledDescription& description, const std::vector<TensorInfo>& tensors) {
  const auto require_there = [&](const std::string& name) {
    fuzz::require(std::ranges::count(tensors, name, &TensorInfo::name) == 1, "a tensor is in the file", name);
  };
  for (const acc::CompiledParameter& parameter : description.parameters) {
    require_there(parameter.name);
    fuzz::require(std::ranges::count(parameter.name, '.') <= 100, "layers have an end", parameter.name);
    fuzz::require(!parameter.name.starts_with('.') && !parameter.name.ends_with('.'), "a tensor has a name",
                  parameter.name);
    fuzz::require(
        parameter.trained == (std::ranges::count(description.training.gradients, parameter.name) == 1),
        "what is trained has a gradient", parameter.name);
  }
  for (const std::string& buffer : description.buffers) require_there(buffer);
  for (const auto& [group, names] : description.groups)
    for (const std::string& name : names) require_there(name);
  for (const acc::CompiledInput& input : description.inputs) {
    fuzz::require(input.dtype != nullptr, "an input has a type");
    for (const auto& size : input.shape) fuzz::require(!size || *size >= 0, "a size is not negative");
  }
}

void check(std::string_view text, std::string_view weights) {
  const auto description = fuzz::value_or_error([&] { return acc::parse_compiled_description(text); });
  if (!description) return;
  fuzz::value_or_error([&] {
    const acc::SafetensorsHeader header = acc::parse_safetensors_header(weights, "weights");
    require_tensors(*description, header.tensors);
    check_description(*description, header.tensors);
    return true;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  check(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())));
  if (const auto files = fuzz::value_or_error([&] { return acc::find_compiled_files(bytes); }))
    check(files->description, files->weights);
  return 0;
}
