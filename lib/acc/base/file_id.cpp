// SPDX-License-Identifier: Apache-2.0
#include "acc/base/file_id.hpp"

namespace acc {

std::optional<FileId> file_id(int file) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  return FileId(status);
}

std::optional<FileId> file_id(const std::filesystem::path& name) {
  struct stat status = {};
  if (::stat(name.c_str(), &status) != 0) return std::nullopt;
  return FileId(status);
}

}  // namespace acc
