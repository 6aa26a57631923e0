// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/signals.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr std::array kNotOurs = {SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS,
                                 SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS};

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (const char* name = ::sigabbrev_np(signal)) result.push_back(std::string("SIG") + name);
  }
  return result;
}

}  // namespace

int signal_number(std::string_view name) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == std::string("SIG") + known) return signal;
  }
  return 0;
}

std::vector<int> parse_signals(std::string_view text, const std::string& where) {
  std::vector<int> signals;
  for (const std::string& entry : split(text, ',')) {
    const std::string name(trim(entry));
    const int signal = signal_number(name);
    if (signal == 0) {
      const std::string meant =
          did_you_mean(name.starts_with("SIG") ? name : "SIG" + to_upper(name), names());
      throw Error({.what = "'" + name + "' is not the name of a signal",
                   .where = where,
                   .hint = meant.empty() ? "as in SIGTERM,SIGUSR1" : meant});
    }
    if (std::ranges::find(kNotOurs, signal) != kNotOurs.end()) {
      throw Error({.what = name + " cannot be a way to ask for the end of the job",
                   .where = where,
                   .hint = "as in SIGTERM,SIGUSR1"});
    }
    signals.push_back(signal);
  }
  return signals;
}

}  // namespace acc::launcher
