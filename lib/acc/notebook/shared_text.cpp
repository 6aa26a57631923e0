// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/shared_text.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

[[noreturn]] void throw_memory_error() {
  throw Error({.kind = ErrorKind::system,
               .what = std::string("no memory for what workers return: ") + std::strerror(errno),
               .where = "notebook_launcher"});
}

}  // namespace

SharedText::SharedText()
    : file_(above_standard_streams(Descriptor(::memfd_create("acc-notebook", MFD_CLOEXEC)))) {
  if (!file_) throw_memory_error();
}

void SharedText::write(std::string_view text) const {
  if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0) throw_memory_error();
  if (!write_all(file_.get(), text)) throw_memory_error();
}

std::string SharedText::read() const {
  struct stat about = {};
  if (::fstat(file_.get(), &about) != 0) throw_memory_error();
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const auto n = ::pread(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_memory_error();
    done += static_cast<std::size_t>(n);
  }
  return text;
}

}  // namespace acc::detail
