// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "acc/runtime/checkpoint/pt_value.hpp"

namespace acc {

/// Reads what torch.save of PyTorch 1.6 or later wrote, tensors of every device into memory of the CPU. They
/// keep the file mapped and read it when they are used; writing to them does not change it. Nothing in a file
/// is executed, and nothing outside of it is read. Throws Error{system} naming the file when it cannot be
/// opened, Error{config} when it is damaged, of an older PyTorch, or holds tensors of a kind that acc lacks.
PtValue read_pt_file(const std::filesystem::path& file);

}  // namespace acc
