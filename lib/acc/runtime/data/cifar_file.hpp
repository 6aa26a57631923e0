// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace acc {

/// Images [n, 3, 32, 32] of uint8 and a label of int64 for each.
struct LabelledImages {
  at::Tensor images = {};
  at::Tensor labels = {};
};

/// CIFAR-10 in its binary version: data_batch_1.bin to data_batch_5.bin of `folder`, or test_batch.bin.
/// Throws Error{system} that names the file when one is missing or is no such file.
LabelledImages read_cifar10(const std::filesystem::path& folder, bool train = true);

/// CIFAR-100 in its binary version: train.bin or test.bin, with the fine labels, 0 to 99.
LabelledImages read_cifar100(const std::filesystem::path& folder, bool train = true);

}  // namespace acc
