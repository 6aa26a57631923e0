// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/appended_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/file_id.hpp"
#include "acc/base/files.hpp"

namespace acc::detail {

AppendedFile::AppendedFile(std::filesystem::path file) : file_(std::move(file)) {
  const std::filesystem::path folder = resolved_path(file_).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error({.kind = ErrorKind::system,
                 .what = "cannot be created: " + error.message(),
                 .where = folder.string()});
  }
  descriptor_ = Descriptor(::open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor_) fail("cannot be opened");
}

bool AppendedFile::is_replaced() const {
  const auto opened = file_id(descriptor_.get());
  if (!opened) return errno == ESTALE;  // removed, on NFS
  const auto named = file_id(file_);
  return named ? named != opened : errno == ENOENT;
}

void AppendedFile::append(std::string_view record) {
  const off_t before = ::lseek(descriptor_.get(), 0, SEEK_END);
  if (write_all(descriptor_.get(), record)) return;
  const int reason = errno;
  if (before >= 0 && ::ftruncate(descriptor_.get(), before) != 0) fail("cannot be truncated");
  errno = reason;
  fail("cannot be written");
}

void AppendedFile::cut_unfinished_line() {
  off_t end = ::lseek(descriptor_.get(), 0, SEEK_END);
  char last = '\0';
  while (end > 0 && ::pread(descriptor_.get(), &last, 1, end - 1) == 1 && last != '\n') --end;
  if (::ftruncate(descriptor_.get(), end) != 0) fail("cannot be truncated");
}

void AppendedFile::fail(std::string_view what) const {
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("{}: {}", what, std::strerror(errno)),
               .where = file_.string()});
}

}  // namespace acc::detail
