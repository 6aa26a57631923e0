// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {

/// Folders for the sockets of a user's running jobs, best first: `$XDG_RUNTIME_DIR/acc`, `/run/user/UID/acc`,
/// `/dev/shm/acc-UID`, `/tmp/acc-UID`, `$TMPDIR/acc-UID`.
std::vector<std::filesystem::path> runtime_folders(const Environment& environment, uid_t user);

/// A folder for sockets, and whose jobs are there.
struct RuntimeFolder {
  std::filesystem::path path = {};
  uid_t owner = 0;
};

/// Those of all users below `root`, for root, who may enter them: `/run/user/*/acc`, `/dev/shm/acc-*`,
/// `/tmp/acc-*`.
std::vector<RuntimeFolder> all_runtime_folders(const std::filesystem::path& root = "/");

/// Opens a runtime folder; with `make`, creates it in an existing parent. Empty if there is none. Throws
/// Error{system} naming the folder if it belongs to another user than `owner` or others may enter it.
Descriptor open_runtime_folder(const std::filesystem::path& folder, bool make, uid_t owner = ::geteuid());

/// Throws Error{system} if this folder, which is named after `owner`, belongs to another user. A folder
/// with another name may belong to anybody.
void require_not_taken(const std::filesystem::path& folder, uid_t owner);

/// The names in an open folder that end with `suffix`, sorted, without hidden ones.
std::vector<std::string> names_in(const Descriptor& folder, std::string_view suffix);

/// How the names of a job's temporary folders begin.
constexpr std::string_view kLogStem = "torchelastic_";
constexpr std::string_view kMemoryStem = "acc_memory_";

/// `<runtime folder>/<id>.job`: names the folders that a job would leave if all its processes were killed. It
/// is locked while the process that made it, or a fork of it, is alive.
class JobFile {
 public:
  /// Creates it in the first of `folders` that can be used and whose file system has O_TMPFILE. Without one
  /// the job runs, too, but its leftovers stay. Leftovers of a killed job of this id are removed; while
  /// another job of this id lives there, as in a container that shares the folder, a number is added to the
  /// id.
  JobFile(const std::vector<std::filesystem::path>& folders, const std::string& id);
  ~JobFile() { remove(); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  /// Adds a temporary folder of the job, before it is created: with one of these stems, or watch_folder().
  /// Others are not removed, nor is one that cannot be written whole.
  void add(const std::filesystem::path& folder);

  /// `<runtime folder>/<id>.progress`, for a folder that is removed with the rest; empty without a file.
  std::filesystem::path progress_folder() const;

  /// The same for `<id>.watch`, once it was added.
  std::filesystem::path watch_folder() const;

  /// Removes the file: the job has cleaned up.
  void remove() const;

  /// Removes the socket beside it, which a killed agent has left.
  void remove_socket() const;

  const std::string& id() const { return id_; }

 private:
  std::string name() const;

  std::filesystem::path path_ = {};
  Descriptor folder_ = {};
  Descriptor file_ = {};
  std::string id_ = {};
};

/// Removes a folder with all that is in it, folders that may not be written too. Returns whether it is gone.
/// Throws nothing.
bool remove_folder(const std::filesystem::path& folder);

/// Removes the folders, sockets and job files of this user's jobs that were killed. Never throws; what cannot
/// be removed, or has a name that no job gives, stays.
void remove_leftovers(const std::vector<std::filesystem::path>& folders);

}  // namespace acc::launcher
