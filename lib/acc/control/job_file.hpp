// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {

/// Where the sockets of a user's running jobs may lie, best first: `$XDG_RUNTIME_DIR/acc`,
/// `/run/user/UID/acc`, `/dev/shm/acc-UID`, `/tmp/acc-UID`, `$TMPDIR/acc-UID`.
std::vector<std::filesystem::path> runtime_folders(const Environment& environment, uid_t user);

/// Opens a runtime folder, and makes it when it is missing and its parent is there. Empty: there is none.
/// Throws Error{system} naming the folder when it belongs to somebody else or others may enter it.
Descriptor open_runtime_folder(const std::filesystem::path& folder, bool make);

/// The names in an open folder that end so, sorted; hidden ones are left out.
std::vector<std::string> names_in(const Descriptor& folder, std::string_view suffix);

/// `<runtime folder>/<id>.job`: names what a job would leave behind if all its processes were killed. It is
/// locked while one of them lives that was forked, not executed, since it was made.
class JobFile {
 public:
  /// Makes it in the first of `folders` that can be used. Without one the job runs all the same, and what it
  /// leaves stays.
  JobFile(const std::vector<std::filesystem::path>& folders, const std::string& id);
  ~JobFile() { remove(); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  /// A folder that is about to be made and goes with the job.
  void add(const std::filesystem::path& folder);

  /// The job leaves nothing that is to be removed.
  void remove() const;

 private:
  Descriptor folder_ = {};
  Descriptor file_ = {};
  std::string name_ = {};
};

/// Removes what jobs of this user have left that were killed: their folders, sockets and files here. Never
/// throws; what cannot be removed stays for the next time.
void remove_leftovers(const std::vector<std::filesystem::path>& folders);

}  // namespace acc::launcher
