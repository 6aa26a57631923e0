// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/retry_on.hpp"

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/signals.hpp"

namespace acc::launcher {
namespace {

bool add_exit_codes(std::string_view text, FailureKinds& kinds) {
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_integer(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last > 255 || *last < *first) return false;
  for (auto code = *first; code <= *last; ++code) kinds.exit_codes.insert(static_cast<int>(code));
  return true;
}

bool add(std::string_view text, FailureKinds& kinds) {
  if (text == "oom") return kinds.oom = true;
  if (text == "signal") return kinds.any_signal = true;
  if (const int signal = signal_number(text); signal != 0) return kinds.signals.insert(signal).second || true;
  return add_exit_codes(text, kinds);
}

}  // namespace

RetryOn parse_retry_on(std::string_view text, const std::string& where) {
  RetryOn result;
  bool all = false;
  for (const std::string& entry : split(text, ',')) {
    std::string_view what = trim(entry);
    const bool denied = what.starts_with('!');
    if (denied) what = trim(what.substr(1));
    if (what == "all" && !denied) {
      all = true;
    } else if (!add(what, denied ? result.not_worth : result.worth)) {
      throw Error({.what = "'" + std::string(trim(entry)) + "' is no way to fail",
                   .where = where,
                   .hint = "exit codes, names of signals, signal, oom, all; ! in front excludes, as in "
                           "signal,!SIGSEGV,75"});
    }
  }
  result.everything = all || result.worth == FailureKinds{};
  return result;
}

}  // namespace acc::launcher
