// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "acc/base/environment.hpp"

namespace acc {

/// Replaces a leading `~` by the home folder, HOME or else the entry of the user database, and `~user` by
/// that of the user, if there is one, as Python's os.path.expanduser does. An empty HOME is the root.
std::filesystem::path expand_home(std::string_view text, const Environment& environment);

}  // namespace acc
