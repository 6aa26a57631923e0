// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

#include <bit>
#include <numeric>
#include <random>
#include <span>
#include <utility>

namespace {

acc::ImageFiles take(const acc::ImageFiles& files, std::span<const std::size_t> indices) {
  acc::ImageFiles subset;
  subset.classes = files.classes;
  for (const std::size_t index : indices) {
    subset.files.push_back(files.files[index]);
    subset.labels.push_back(files.labels[index]);
  }
  return subset;
}

}  // namespace

std::vector<std::size_t> permutation(std::uint32_t seed, std::size_t size) {
  // numpy's legacy generator is MT19937. It draws below a limit by the bits that the limit needs, again until
  // the number fits, and shuffles from the end.
  std::mt19937 random(seed);
  const auto up_to = [&](std::size_t max) {
    const std::uint32_t mask = std::bit_ceil(static_cast<std::uint32_t>(max) + 1) - 1;
    for (;;) {
      const std::size_t value = random() & mask;
      if (value <= max) return value;
    }
  };
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = size; i-- > 1;) std::swap(order[i], order[up_to(i)]);
  return order;
}

Split split(const acc::ImageFiles& files, std::uint32_t seed) {
  const std::vector<std::size_t> order = permutation(seed, files.files.size());
  const std::span<const std::size_t> all = order;
  const auto cut = static_cast<std::size_t>(0.8 * static_cast<double>(all.size()));
  return {.train = take(files, all.first(cut)), .eval = take(files, all.subspan(cut))};
}
