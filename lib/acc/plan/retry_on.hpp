// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace acc::launcher {

/// Ways in which a worker can fail.
struct FailureKinds {
  std::set<int> exit_codes = {};
  std::set<int> signals = {};
  bool any_signal = false;
  /// The kernel killed it for memory.
  bool oom = false;

  bool operator==(const FailureKinds&) const = default;
};

/// Which failures are worth a restart.
struct RetryOn {
  /// When nothing is named as worth it, everything is.
  bool everything = true;
  FailureKinds worth = {};
  /// Beats `worth`.
  FailureKinds not_worth = {};

  bool operator==(const RetryOn&) const = default;
};

/// Entries separated by commas: an exit code or a range of them (`1`, `64-78`), the name of a signal,
/// `signal` for any, `oom`, or `all`; with `!` in front: not worth a restart. With such entries alone
/// everything else is worth it. Throws Error{usage} with `where`.
RetryOn parse_retry_on(std::string_view text, const std::string& where);

}  // namespace acc::launcher
