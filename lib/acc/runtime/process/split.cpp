// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/split.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc {

Part split(std::size_t length, std::size_t index, std::size_t count, bool apply_padding) {
  const std::size_t each = length / count;
  const std::size_t extra = length % count;
  Part part{.begin = index * each + std::min(index, extra)};
  part.end = part.begin + each + (index < extra ? 1 : 0);
  if (apply_padding) part.padding = each + (extra > 0 ? 1 : 0) - (part.end - part.begin);
  return part;
}

void require_same_length(std::size_t first, std::size_t other) {
  if (first == other) return;
  throw Error(
      {.what = fmt::format("all values must have the same length, but there are {} and {}", first, other),
       .where = "split_between_processes"});
}

at::Tensor take(const at::Tensor& tensor, const Part& part) {
  const at::Tensor taken =
      tensor.slice(0, static_cast<std::int64_t>(part.begin), static_cast<std::int64_t>(part.end));
  if (part.padding == 0) return taken;
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(tensor.dim()), 1);
  repeats[0] = static_cast<std::int64_t>(part.padding);
  return at::cat({taken, tensor.slice(0, -1).repeat(repeats)});
}

}  // namespace acc
