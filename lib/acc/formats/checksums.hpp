// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace acc {

/// XXH3 (128 bits) of the file's content, in hexadecimal digits. Throws Error{system} if it cannot be read.
std::string checksum_of(const std::filesystem::path& file);

/// One of the processes that divide the files of a folder among themselves.
struct FileShare {
  std::size_t index = 0;  ///< From 0.
  std::size_t count = 1;  ///< The number of processes.
};

/// Writes `checksums_<index>.json` with the sizes and checksums (XXH3, 128 bits) of this process's share of
/// the files in the folder and its subfolders. Every process of the share must call it when all other files
/// are there, and none before them. Throws Error{system} where a file cannot be read or written.
void write_checksums(const std::filesystem::path& folder, const FileShare& share);

/// What is wrong with a folder of that kind; empty: it has all files, no others, and those of this share are
/// what was written. The number of processes may be another one than when it was written.
std::string damage_in(const std::filesystem::path& folder, const FileShare& share = {});

}  // namespace acc
