// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "acc/base/environment.hpp"

namespace acc::launcher {

/// Where the sockets of a user's running jobs may lie, best first: `$XDG_RUNTIME_DIR/acc`,
/// `/run/user/UID/acc`, `/dev/shm/acc-UID`, `/tmp/acc-UID`, `$TMPDIR/acc-UID`.
std::vector<std::filesystem::path> runtime_folders(const Environment& environment, uid_t user);

/// Opens a runtime folder, and makes it when it is missing and its parent is there. Empty: there is none.
/// Throws Error{system} naming the folder when it belongs to somebody else or others may enter it.
Descriptor open_runtime_folder(const std::filesystem::path& folder, bool make);

/// The names in an open folder that end so, sorted; hidden ones are left out.
std::vector<std::string> names_in(const Descriptor& folder, std::string_view suffix);

}  // namespace acc::launcher
