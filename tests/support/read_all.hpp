// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string>

namespace acc::test {

/// Reads what is available from `fd`; from a blocking one, everything until EOF.
inline std::string read_all(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t n = ::read(fd, buffer, sizeof buffer); n > 0; n = ::read(fd, buffer, sizeof buffer)) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace acc::test
