// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/base/error.hpp"

namespace acc {

/// Throws Error{config}: a file is not what its format asks for. The caller adds which file.
[[noreturn]] inline void refuse(const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::config, .what = what, .hint = hint});
}

}  // namespace acc
