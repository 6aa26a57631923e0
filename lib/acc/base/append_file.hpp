// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/base/files.hpp"

namespace acc {

/// Opens a file to which several processes append lines, each with one write(2). A pipe makes nobody wait:
/// without a reader it cannot be opened, and while its reader stands still it cannot be written. Empty, with
/// errno, when the file cannot be opened.
Descriptor open_to_append(const std::filesystem::path& file);

/// Why such a file cannot be opened or written, by errno.
std::string append_problem(int number, const std::filesystem::path& file);

}  // namespace acc
