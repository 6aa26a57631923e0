// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acc/data.hpp"

/// 0 to size - 1 in the order of numpy's `random.seed(seed); random.permutation(size)`.
std::vector<std::size_t> permutation(std::uint32_t seed, std::size_t size);

struct Split {
  acc::ImageFiles train = {};
  acc::ImageFiles eval = {};
};

/// 80 % of the files to train on and the others to evaluate, as accelerate's examples split them: by a
/// permutation of their order.
Split split(const acc::ImageFiles& files, std::uint32_t seed);
