// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace acc {

/// Writes all of `text`, whatever signals come. False: it could not, and errno says why.
bool write_all(int fd, std::string_view text);

/// `path` without symbolic links, dots and the working folder, also where it does not exist yet; a link to
/// nothing is followed to where it points. Throws Error{system} for a loop of links.
std::filesystem::path resolved_path(const std::filesystem::path& path);

/// The whole file. Throws Error{system} naming the file when it is missing, a folder, unreadable, or larger
/// than `most` bytes.
std::string read_file(const std::filesystem::path& file, std::size_t most = 64U << 20U);

/// The first line of a file of /proc or /sys, without its end; empty when it cannot be read.
std::string first_line_of(const std::filesystem::path& file);

/// Replaces `file` in one step: readers see the old text or the new one, never a part, also when the machine
/// dies. Makes missing parent folders; keeps the mode of an existing file; writes through a symbolic link.
/// Throws Error{system}; the old file is then untouched.
void replace_file(const std::filesystem::path& file, std::string_view text);

/// The same for a text in `parts`, written one after the other: a large file needs no second copy in memory.
void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

/// The folder of the running program, from the kernel: `acc` finds what was installed beside it.
std::filesystem::path program_folder();

}  // namespace acc
