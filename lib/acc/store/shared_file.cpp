// SPDX-License-Identifier: Apache-2.0
#include "acc/store/shared_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

std::error_code error_if(bool has_failed) {
  return has_failed ? std::error_code(errno, std::generic_category()) : std::error_code();
}

}  // namespace

struct SharedFile::Impl {
  Descriptor fd = {};
};

SharedFile::SharedFile(const std::filesystem::path& path, std::error_code& error)
    : impl_(std::make_unique<Impl>()) {
  impl_->fd = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  error = error_if(!impl_->fd);
}

SharedFile::~SharedFile() = default;

bool SharedFile::lock(std::error_code& error) {
  error.clear();
  while (::flock(impl_->fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    error = error_if(errno != EWOULDBLOCK);
    return false;
  }
  return true;
}

SharedFile::Status SharedFile::status(std::error_code& error) const {
  struct stat about = {};
  error = error_if(::fstat(impl_->fd.get(), &about) != 0);
  return {.identity = {about.st_dev, about.st_ino},
          .is_regular = S_ISREG(about.st_mode),
          .size = static_cast<std::size_t>(about.st_size)};
}

std::string SharedFile::read(std::size_t offset, std::size_t max_size, std::error_code& error) const {
  std::string bytes(max_size, '\0');
  ssize_t size = 0;
  do {
    size = ::pread(impl_->fd.get(), bytes.data(), max_size, static_cast<off_t>(offset));
  } while (size < 0 && errno == EINTR);
  error = error_if(size < 0);
  bytes.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return bytes;
}

void SharedFile::write(std::size_t offset, std::string_view bytes, std::error_code& error) {
  const int fd = impl_->fd.get();
  error = error_if(::lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0 || !write_all(fd, bytes));
}

void SharedFile::truncate(std::size_t size, std::error_code& error) {
  error = error_if(::ftruncate(impl_->fd.get(), static_cast<off_t>(size)) != 0);
}

}  // namespace acc::launcher
