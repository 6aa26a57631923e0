// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "acc/base/environment.hpp"

namespace acc {

/// Owns a file descriptor or is empty.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// The same file under a number that is none of the standard streams'. A descriptor that is opened while one
/// of them is closed gets its number, and is lost when a child gets a stream of that number. Empty where
/// there are too many open files, see errno, and for an empty one.
Descriptor above_standard_streams(Descriptor descriptor);

/// How many descriptors go with one message; the kernel takes 253.
inline constexpr std::size_t kMaxSentDescriptors = 250;

/// Throws Error{system}: `what` could not be done with `file`, for the reason of this errno.
[[noreturn]] void throw_errno(const std::filesystem::path& file, const std::string& what, int number);

/// Throws Error{config}: the content of `file` is not what it should be.
[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& what,
                              const std::string& hint = "");

/// Sends `text`, which is not empty, as one message to a Unix socket, with at most kMaxSentDescriptors
/// descriptors. `flags`: of sendmsg, besides MSG_NOSIGNAL. Returns false and sets errno on failure.
bool send_message(int socket, std::string_view text, std::span<const int> descriptors = {}, int flags = 0);

/// Writes all of `text`, and continues after signals. Returns false and sets errno on failure.
bool write_all(int fd, std::string_view text);

/// The canonical absolute path, also of a file that does not exist yet; dangling links are followed. Throws
/// Error{system} for a loop of links.
std::filesystem::path resolved_path(const std::filesystem::path& path);

/// Reads the whole file. Throws Error{system} naming the file if it is missing, a folder, unreadable, or
/// larger than `max_bytes`.
std::string read_file(const std::filesystem::path& file, std::size_t max_bytes = 64U << 20U);

/// The text of a file of /proc, /sys or a cgroup; empty when it cannot be read.
std::string text_of_kernel(const std::filesystem::path& file);

/// The first line of such a file, without the newline; empty when it cannot be read.
std::string first_line_of(const std::filesystem::path& file);

/// Replaces `file` atomically (temporary file, fsync, rename): readers see the old or the new text, also
/// after a crash of the machine. Creates missing parent folders; keeps mode, owner and group of an existing
/// file, as far as this process may; writes through a symbolic link. Throws Error{system}, also where there
/// is something else than a file; what is there is then untouched.
void replace_file(const std::filesystem::path& file, std::string_view text);

/// The same for the concatenation of `parts`, without a second copy in memory.
void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

/// Waits until the names in `folder` are on the disk: what was created or renamed there is found after a
/// crash of the machine. Does nothing where the file system has no such call (EINVAL, EBADF) or this process
/// may not read the folder (EACCES), as PostgreSQL's fsync_fname(). Throws Error{system}.
void sync_folder(const std::filesystem::path& folder);

/// Gives an open file or folder the mode, owner and group of `old`, as far as this process may.
void keep_owner_and_mode(int fd, const struct stat& old);

/// Throws what replace_file() would throw now, before there is something to write; creates missing parent
/// folders.
void require_replaceable(const std::filesystem::path& file);

/// Waits for the lock of the folder that has `file`, and holds it: processes that read a file, change and
/// replace it do so one after the other. Empty where the folder is missing or the file system has no locks.
Descriptor lock_folder_of(const std::filesystem::path& file);

/// The folder of the running executable (/proc/self/exe).
std::filesystem::path program_folder();

/// The path by which the program was executed (AT_EXECFN), with its symbolic links.
std::filesystem::path program_path();

/// The current folder. Throws Error{system} if it was removed.
std::filesystem::path current_folder();

/// `path` relative to the current folder; an absolute path is returned unchanged. Throws as current_folder().
std::filesystem::path absolute_path(const std::filesystem::path& path);

/// `path` without what says only that it is a folder: a slash or `/.` at its end. Then it has a name, and a
/// folder that it is in.
std::filesystem::path without_trailing_slash(std::filesystem::path path);

/// The folder that Python's tempfile would use (TMPDIR, TEMP, TMP, /tmp, ...); nullopt: none can be written.
std::optional<std::filesystem::path> temporary_folder(const Environment& environment);

/// A file mapped with MAP_PRIVATE: pages are read on first access, writes stay in this process.
class MappedFile {
 public:
  /// Throws Error{system} naming the file when it cannot be read.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace acc
