// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace acc {

/// Which file it is, whatever its names are. An inode may be used again once its file is gone.
struct FileId {
  explicit FileId(const struct stat& status) : device(status.st_dev), inode(status.st_ino) {}
  bool operator==(const FileId&) const = default;

  dev_t device;
  ino_t inode;
};

/// The id of an open file; absent, with errno, if the kernel does not tell it.
std::optional<FileId> file_id(int file);

/// That of the file which has this name now, or to which it links; absent, with errno, as where there is
/// none.
std::optional<FileId> file_id(const std::filesystem::path& name);

}  // namespace acc
