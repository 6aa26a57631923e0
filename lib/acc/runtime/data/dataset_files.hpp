// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace acc {

/// Reads an IDX file, the format of MNIST and similar data sets, plain or compressed with gzip. Throws
/// Error{system} naming the file when it is missing, is not an IDX file, or does not have the size that its
/// header says.
at::Tensor read_idx(const std::filesystem::path& file);

/// Images as uint8 [n, 3, 32, 32] and their labels as int64 [n].
struct LabelledImages {
  at::Tensor images = {};  ///< [n, channels, height, width], uint8.
  at::Tensor labels = {};  ///< [n], int64.
};

/// CIFAR-10 in its binary version: data_batch_1.bin to data_batch_5.bin of `folder`, or test_batch.bin.
/// Throws Error{system} naming the file when one is missing or has another format.
LabelledImages read_cifar10(const std::filesystem::path& folder, bool train = true);

/// CIFAR-100 in its binary version: train.bin or test.bin, with the fine labels, 0 to 99.
LabelledImages read_cifar100(const std::filesystem::path& folder, bool train = true);

}  // namespace acc
