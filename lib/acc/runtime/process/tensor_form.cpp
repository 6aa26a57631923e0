// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/tensor_form.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc {
namespace {

at::ScalarType type_of(const std::int64_t* numbers) {
  return static_cast<at::ScalarType>(numbers[0]);
}

c10::IntArrayRef sizes_of(const std::int64_t* numbers) {
  return {numbers + kFormSizes, static_cast<std::size_t>(numbers[1])};
}

}  // namespace

void write_form(const at::Tensor& tensor, std::int64_t* numbers, const std::string& where) {
  if (tensor.dim() > kMostDimensions) {
    throw Error({.what = fmt::format("a tensor has {} dimensions, and at most {} can be sent", tensor.dim(),
                                     kMostDimensions),
                 .where = where});
  }
  numbers[0] = static_cast<std::int64_t>(tensor.scalar_type());
  numbers[1] = tensor.dim();
  std::ranges::copy(tensor.sizes(), numbers + kFormSizes);
  std::fill(numbers + kFormSizes + tensor.dim(), numbers + kFormSize, 0);
}

at::Tensor empty_of_form(const std::int64_t* numbers) {
  return at::empty(sizes_of(numbers), at::TensorOptions(type_of(numbers)));
}

std::string form_text(const std::int64_t* numbers) {
  return fmt::format("{} [{}]", c10::toString(type_of(numbers)), fmt::join(sizes_of(numbers), ", "));
}

}  // namespace acc
