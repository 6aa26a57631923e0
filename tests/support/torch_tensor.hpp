// SPDX-License-Identifier: Apache-2.0
// What tests of the runtime share.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

namespace acc::test {

/// The numbers in the shape and type.
at::Tensor numbers(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                   at::ScalarType type);

/// A new empty folder, removed at the end of the program.
std::filesystem::path temporary_folder();

}  // namespace acc::test
