// SPDX-License-Identifier: Apache-2.0
#include "acc/base/append_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace acc {

Descriptor open_to_append(const std::filesystem::path& file) {
  return Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666));
}

std::string append_problem(int number, const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code ignored;
  if (number == ENOENT && !folder.empty() && !std::filesystem::exists(folder, ignored))
    return "no such folder: " + folder.string();
  if (number == ENXIO) return "it is a pipe without a reader";
  if (number == EAGAIN) return "its reader does not read";
  return std::strerror(number);
}

}  // namespace acc
