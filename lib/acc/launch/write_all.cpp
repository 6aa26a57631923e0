// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/write_all.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace acc {

std::string write_all(const Descriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::strerror(errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace acc
