// SPDX-License-Identifier: Apache-2.0
#include "acc/base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "acc/base/error.hpp"

namespace acc {

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
