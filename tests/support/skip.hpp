// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace acc::test {

/// The exit code of a process that cannot do its test here; CTest counts it as skipped.
constexpr int kSkipped = 77;

/// Prints that the test, or a part of it, does not run here, and why: the line by which scripts/test counts
/// skipped tests. It groups them by `reason`, so the same reason has the same words everywhere.
inline void skip(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::fflush(stdout);
}

}  // namespace acc::test
