// SPDX-License-Identifier: Apache-2.0
#include "acc/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

// After this many bytes the kernel is asked to start writing them back, so that fsync waits for the rest
// only.
constexpr std::size_t kWriteBackBytes = 4U << 20U;

bool write_parts(int fd, std::span<const std::string_view> parts) {
  off64_t begin = 0;
  std::size_t size = 0;
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const std::string_view piece = part.substr(0, kWriteBackBytes - size);
      if (!write_all(fd, piece)) return false;
      part.remove_prefix(piece.size());
      size += piece.size();
      if (size < kWriteBackBytes) continue;
      ::sync_file_range(fd, begin, static_cast<off64_t>(size), SYNC_FILE_RANGE_WRITE);
      begin += static_cast<off64_t>(std::exchange(size, 0));
    }
  }
  return true;
}

// Follows symbolic links, also dangling ones.
fs::path target_of(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  for (int links = 0; links < kMaxLinks && fs::is_symlink(file, error); ++links)
    file = file.parent_path() / fs::read_symlink(file, error);
  if (fs::is_symlink(file, error)) throw_errno(file, "cannot be written", ELOOP);
  return file;
}

// poll(2) for POLLIN; -1 waits without limit.
short events(int fd, int milliseconds) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, milliseconds) < 0 && errno == EINTR) continue;
  return waiting.revents;
}

// poll reports POLLHUP for a pipe only after it had a writer.
bool has_no_writer(int fd) {
  struct stat about = {};
  const bool pipe = ::fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
  return pipe && (events(fd, 0) & POLLHUP) == 0;
}

}  // namespace

void throw_errno(const fs::path& file, const std::string& what, int number) {
  throw Error(
      {.kind = ErrorKind::system, .what = what + ": " + std::strerror(number), .where = file.string()});
}

void refuse_file(const fs::path& file, const std::string& what, const std::string& hint) {
  throw Error({.kind = ErrorKind::config, .what = what, .where = file.string(), .hint = hint});
}

bool send_message(int socket, std::string_view text, std::span<const int> descriptors, int flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSentDescriptors)] = {};
  iovec bytes = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

fs::path resolved_path(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path result = error ? fs::path() : fs::weakly_canonical(target_of(absolute), error);
  if (error) throw_errno(path, "cannot be found", error.value());
  return result.has_filename() ? result : result.parent_path();
}

std::string read_file(const fs::path& file, std::size_t max_bytes) {
  // Opening a named pipe would wait for a writer.
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) throw_errno(file, "cannot be read", errno);
  std::string text;
  std::array<char, 1U << 16U> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && events(fd.get(), -1) != 0) continue;
    if (n < 0) throw_errno(file, "cannot be read", errno);
    if (n == 0 && text.empty() && has_no_writer(fd.get()))
      throw Error({.kind = ErrorKind::system, .what = "is a pipe without a writer", .where = file.string()});
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > max_bytes) {
      throw Error({.kind = ErrorKind::system,
                   .what = "is larger than " + pluralize(max_bytes, "byte"),
                   .where = file.string()});
    }
  }
}

std::string text_of_kernel(const fs::path& file) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::string first_line_of(const fs::path& file) {
  std::string text = text_of_kernel(file);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

// The umask lowers what open(2) was given, and another user's file stays his.
void keep_owner_and_mode(int fd, const struct stat& old) {
  if (::fchown(fd, old.st_uid, old.st_gid) != 0 && ::fchown(fd, static_cast<uid_t>(-1), old.st_gid) != 0) {
    // Neither is allowed: the file becomes this user's.
  }
  ::fchmod(fd, old.st_mode & 07777U);
}

namespace {

// A temporary file beside the one that it is to replace. It is removed unless it was renamed.
class Replacement {
 public:
  // Creates it, and missing parent folders.
  explicit Replacement(const fs::path& file)
      : target_(target_of(file)), folder_(target_.has_parent_path() ? target_.parent_path() : fs::path(".")) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) throw_errno(folder_, "cannot be created", error.value());
    struct stat old = {};
    const bool existed = ::stat(target_.c_str(), &old) == 0;
    if (existed && S_ISDIR(old.st_mode)) throw_errno(target_, "cannot be replaced", EISDIR);
    // A device or a pipe would be gone.
    if (existed && !S_ISREG(old.st_mode))
      throw Error({.kind = ErrorKind::system, .what = "is not a regular file", .where = target_.string()});
    // Random: a process that was killed may have left its own, and ids repeat in other containers.
    temporary_ = target_;
    temporary_ += fmt::format(".acc-{:08x}", random_number());
    const mode_t mode = existed ? old.st_mode & 07777U : 0644U;
    fd_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd_) throw_errno(target_, "cannot be written", errno);
    if (existed) keep_owner_and_mode(fd_.get(), old);
  }
  ~Replacement() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::span<const std::string_view> parts) {
    if (!write_parts(fd_.get(), parts) || ::fsync(fd_.get()) != 0 || ::close(fd_.release()) != 0)
      throw_errno(target_, "cannot be written", errno);
  }

  void rename() {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) throw_errno(target_, "cannot be replaced", errno);
    temporary_.clear();
    sync_folder(folder_);
  }

 private:
  fs::path target_;
  fs::path folder_;
  fs::path temporary_ = {};
  Descriptor fd_ = {};
};

}  // namespace

void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool synced =
      opened ? ::fsync(opened.get()) == 0 || errno == EINVAL || errno == EBADF : errno == EACCES;
  if (!synced) throw_errno(folder, "cannot be written", errno);
}

void replace_file(const fs::path& file, std::string_view text) {
  replace_file(file, std::span(&text, 1));
}

void require_replaceable(const fs::path& file) {
  const Replacement replacement(file);
}

void replace_file(const fs::path& file, std::span<const std::string_view> parts) {
  Replacement replacement(file);
  replacement.write(parts);
  replacement.rename();
}

Descriptor above_standard_streams(Descriptor descriptor) {
  if (!descriptor || descriptor.get() > STDERR_FILENO) return descriptor;
  return Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Descriptor lock_folder_of(const fs::path& file) {
  const fs::path folder = target_of(file).parent_path();
  Descriptor lock(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (lock && ::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) lock.reset();
  }
  return lock;
}

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

fs::path program_path() {
  const auto address = ::getauxval(AT_EXECFN);
  return address == 0 ? "" : reinterpret_cast<const char*>(address);
}

fs::path current_folder() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  if (!error) return folder;
  throw Error({.kind = ErrorKind::system,
               .what = "the current folder was removed",
               .hint = "change to another folder"});
}

fs::path absolute_path(const fs::path& path) {
  return path.is_absolute() ? path : current_folder() / path;
}

fs::path without_trailing_slash(fs::path path) {
  while (path.has_parent_path() && path.has_relative_path() &&
         (!path.has_filename() || path.filename() == "."))
    path = path.parent_path();
  return path;
}

namespace {

// In /proc, for example, permissions promise more than the file system does.
bool can_make_file(const fs::path& folder) {
  std::string file = (folder / "acc_XXXXXX").string();
  const Descriptor made(::mkostemp(file.data(), O_CLOEXEC));
  return made && ::unlink(file.c_str()) == 0;
}

}  // namespace

std::optional<fs::path> temporary_folder(const Environment& environment) {
  std::error_code ignored;
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const fs::path folder = environment.get(name);
    if (!folder.empty() && fs::is_directory(folder, ignored) && can_make_file(folder))
      return absolute_path(folder);
  }
  for (const char* folder : {"/tmp", "/var/tmp", "/usr/tmp"}) {
    if (::access(folder, W_OK | X_OK) == 0) return folder;
  }
  fs::path current = fs::current_path(ignored);
  if (!current.empty() && can_make_file(current)) return current;
  return std::nullopt;
}

MappedFile::MappedFile(const std::filesystem::path& file) {
  const auto fail = [&](int number) {
    return Error({.kind = ErrorKind::system,
                  .what = std::string("cannot be read: ") + std::strerror(number),
                  .where = file.string()});
  };
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw fail(errno);
  struct stat status = {};
  int failed = ::fstat(fd, &status) != 0 ? errno : 0;
  if (failed == 0 && S_ISDIR(status.st_mode)) failed = EISDIR;
  if (failed == 0 && !S_ISREG(status.st_mode)) failed = ENODEV;  // mmap's own answer
  if (failed == 0 && status.st_size > 0) {
    size_ = static_cast<std::size_t>(status.st_size);
    void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      failed = errno;
    } else {
      data_ = static_cast<char*>(mapped);
    }
  }
  ::close(fd);
  if (failed != 0) throw fail(failed);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace acc
