// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/tensor_form.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

at::ScalarType type_of(const std::int64_t* numbers) {
  return static_cast<at::ScalarType>(numbers[0]);
}

c10::IntArrayRef sizes_of(const std::int64_t* numbers) {
  return {numbers + kFormSizes, static_cast<std::size_t>(numbers[1])};
}

}  // namespace

std::optional<Obstacle> obstacle_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return Obstacle::undefined;
  if (tensor.layout() != at::kStrided) return Obstacle::not_dense;
  if (tensor.is_meta()) return Obstacle::no_values;
  if (tensor.dim() > kMaxDimensions) return Obstacle::dimensions;
  return std::nullopt;
}

std::string obstacle_text(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::undefined:
      return "an undefined tensor";
    case Obstacle::not_dense:
      return "a sparse tensor";
    case Obstacle::no_values:
      return "a tensor of the meta device";
    case Obstacle::dimensions:
      break;
  }
  return fmt::format("a tensor with more than {} dimensions", kMaxDimensions);
}

void require_sendable(const at::Tensor& tensor, const std::string& where) {
  if (const auto obstacle = obstacle_of(tensor))
    throw Error({.what = obstacle_text(*obstacle) + " cannot be sent", .where = where});
}

void write_form(const at::Tensor& tensor, std::int64_t* numbers, const std::string& where) {
  require_sendable(tensor, where);
  write_form(tensor, numbers);
}

void write_form(const at::Tensor& tensor, std::int64_t* numbers) {
  numbers[0] = static_cast<std::int64_t>(tensor.scalar_type());
  numbers[1] = tensor.dim();
  std::ranges::copy(tensor.sizes(), numbers + kFormSizes);
  std::fill(numbers + kFormSizes + tensor.dim(), numbers + kFormSize, 0);
}

void refuse_numbers(const std::string& where) {
  throw Error({.kind = ErrorKind::system,
               .what = "what another rank sent is something else than what is expected here",
               .where = where,
               .hint = "all ranks must run the same version of the program, and make the same calls in the "
                       "same order"});
}

void require_form(const std::int64_t* numbers, const std::string& where) {
  const std::int64_t type = numbers[0];
  const std::int64_t dimensions = numbers[1];
  const bool is_form = type >= 0 && type < static_cast<std::int64_t>(at::ScalarType::Undefined) &&
                       dimensions >= 0 && dimensions <= kMaxDimensions;
  if (!is_form) refuse_numbers(where);
  const std::int64_t* const sizes = numbers + kFormSizes;
  const bool has_sizes = std::all_of(sizes, sizes + dimensions, [](std::int64_t size) { return size >= 0; });
  const bool ends =
      std::all_of(sizes + dimensions, sizes + kMaxDimensions, [](std::int64_t rest) { return rest == 0; });
  if (!has_sizes || !ends) refuse_numbers(where);
}

at::Tensor empty_of_form(const std::int64_t* numbers) {
  return at::empty(sizes_of(numbers), at::TensorOptions(type_of(numbers)));
}

std::string form_text(const std::int64_t* numbers) {
  return fmt::format("{} [{}]", c10::toString(type_of(numbers)), fmt::join(sizes_of(numbers), ", "));
}

}  // namespace acc::detail
