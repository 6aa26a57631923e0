// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace acc::launcher {

/// A row of the table of exit codes in the man pages and in lib/README.md.
struct ExitCodeMeaning {
  std::string_view code = {};
  std::string_view meaning = {};
};

/// Every exit code of `acc launch` and `acc run`.
std::span<const ExitCodeMeaning> exit_code_meanings();

}  // namespace acc::launcher
