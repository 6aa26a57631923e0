// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "acc/base/environment.hpp"

namespace acc {

/// The path that the program was started by: symbolic links in it are as they were typed, or as they stand on
/// PATH.
std::filesystem::path program_path();

/// The current folder. Throws Error{system} where it was removed.
std::filesystem::path current_folder();

/// `path` from the current folder; one that is absolute needs none. Throws as current_folder() does.
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// TMPDIR, absolute; absent where it is empty or does not name a folder.
std::optional<std::filesystem::path> temporary_folder(const Environment& environment);

}  // namespace acc
