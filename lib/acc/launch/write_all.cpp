// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/write_all.hpp"

#include <cerrno>
#include <cstring>

#include "acc/base/files.hpp"

namespace acc {

std::string write_all(const Descriptor& file, std::string_view text) {
  return write_all(file.get(), text) ? "" : std::strerror(errno);
}

}  // namespace acc
