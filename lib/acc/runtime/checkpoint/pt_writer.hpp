// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "acc/runtime/checkpoint/pt_value.hpp"

namespace acc {

/// Replaces `file` in one step by one that Python's torch.load takes, with weights_only and with mmap too.
/// Tensors of any device and stride, each with a storage of its own on the CPU. Throws Error{usage} for a
/// PtObject or an element type that torch.save lacks, Error{system} when the file cannot be written; the old
/// one is then untouched.
void write_pt_file(const std::filesystem::path& file, const PtValue& value);

}  // namespace acc
