// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/base/error.hpp"

namespace acc::launcher {

/// Throws Error{config}: the file or folder `where` is not a checkpoint that acc reads.
[[noreturn]] inline void refuse(const std::filesystem::path& where, const std::string& what,
                                const std::string& hint = "") {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where.string(), .hint = hint});
}

}  // namespace acc::launcher
