// SPDX-License-Identifier: Apache-2.0
#include "acc/base/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "acc/base/descriptor.hpp"
#include "acc/base/error.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const std::string& what, int error_number) {
  throw Error(
      {.kind = ErrorKind::system, .what = what + ": " + std::strerror(error_number), .where = file.string()});
}

// Removes the temporary file unless it became the real one.
struct RemoveUnlessKept {
  const fs::path& path;
  bool kept = false;
  ~RemoveUnlessKept() {
    if (!kept) ::unlink(path.c_str());
  }
};

// After so much the disk begins with it, while the next is copied; fsync then waits for the rest alone.
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

// Where the symbolic links lead, also when nothing is there yet.
fs::path target_of(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  for (int links = 0; links < kMaxLinks && fs::is_symlink(file, error); ++links)
    file = file.parent_path() / fs::read_symlink(file, error);
  if (fs::is_symlink(file, error)) fail(file, "cannot be written", ELOOP);
  return file;
}

// What happens to a descriptor that is read, within so many milliseconds; -1 waits.
short events(int fd, int milliseconds) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, milliseconds) < 0 && errno == EINTR) continue;
  return waiting.revents;
}

// A pipe that once had a writer hangs up when the last one is gone.
bool has_no_writer(int fd) {
  struct stat about = {};
  const bool pipe = ::fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
  return pipe && (events(fd, 0) & POLLHUP) == 0;
}

}  // namespace

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
  if (error) fail(path, "cannot be found", error.value());
  return result.has_filename() ? result : result.parent_path();
}

std::string read_file(const fs::path& file, std::size_t most) {
  // Opening a named pipe would wait for somebody who writes to it.
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(file, "cannot be read", errno);
  std::string text;
  std::array<char, 1U << 16U> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && events(fd.get(), -1) != 0) continue;
    if (n < 0) fail(file, "cannot be read", errno);
    if (n == 0 && text.empty() && has_no_writer(fd.get()))
      throw Error(
          {.kind = ErrorKind::system, .what = "is a pipe that nobody writes to", .where = file.string()});
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > most) {
      throw Error({.kind = ErrorKind::system,
                   .what = "is larger than " + std::to_string(most) + " bytes",
                   .where = file.string()});
    }
  }
}

std::string first_line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

void replace_file(const fs::path& file, std::string_view text) {
  replace_file(file, std::span(&text, 1));
}

void replace_file(const fs::path& file, std::span<const std::string_view> parts) {
  std::error_code error;
  const fs::path target = target_of(file);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(folder, error);
  if (error) fail(folder, "cannot be made", error.value());

  struct stat old = {};
  const mode_t mode = ::stat(target.c_str(), &old) == 0 ? old.st_mode & 07777U : 0644U;
  fs::path temporary = target;
  temporary += ".acc-" + std::to_string(::getpid());
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd.get() < 0) fail(target, "cannot be written", errno);
  RemoveUnlessKept cleanup{temporary};
  if (!write_parts(fd.get(), parts) || ::fsync(fd.get()) != 0 || ::close(fd.release()) != 0)
    fail(target, "cannot be written", errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) fail(target, "cannot be replaced", errno);
  cleanup.kept = true;
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace acc
