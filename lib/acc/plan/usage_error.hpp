// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/base/error.hpp"

namespace acc::launcher {

/// Throws Error{usage}: a flag, a variable or a setting, named by `where`, that a job cannot be started with.
[[noreturn]] inline void fail(const std::string& where, const std::string& what,
                              const std::string& hint = "") {
  throw Error({.kind = ErrorKind::usage, .what = what, .where = where, .hint = hint});
}

/// Throws Error{usage} if the flag or variable `where` names no file.
inline void require_file_name(const std::string& name, const std::string& where) {
  if (name.empty()) fail(where, "is empty", "name a file");
}

}  // namespace acc::launcher
