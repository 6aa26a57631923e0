// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace acc::launcher {

/// Creates a folder `stem` followed by random letters, for its user alone. `before` is called with each path
/// that is tried, before it is created. Empty if it cannot be created; errno says why.
std::filesystem::path make_unique_folder(const std::filesystem::path& stem,
                                         const std::function<void(const std::filesystem::path&)>& before);

}  // namespace acc::launcher
