// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace acc {

/// Reads an IDX file, the format of MNIST and its relatives, plain or compressed with gzip. Throws
/// Error{system} that names the file when it is missing, is no IDX file, or is shorter or longer than its
/// header says.
at::Tensor read_idx(const std::filesystem::path& file);

}  // namespace acc
