// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/signals.hpp"

#include <csignal>

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_signals;

TEST_CASE("signals: whole names, with blanks or without", "[plan]") {
  CHECK(parse_signals("SIGTERM, SIGUSR1 ,SIGXCPU", "") == std::vector<int>{SIGTERM, SIGUSR1, SIGXCPU});
  CHECK(acc::launcher::signal_number("SIGINT") == SIGINT);
  CHECK(acc::launcher::signal_number("INT") == 0);
}

TEST_CASE("signals: what no program can wait for is refused, with its flag", "[plan]") {
  const auto error = [](const std::string& text) {
    return acc::test::error_of([&] { parse_signals(text, "--signals-to-handle"); });
  };
  CHECK(error("SIGTERM,USR1") ==
        "--signals-to-handle: 'USR1' is not the name of a signal (did you mean 'SIGUSR1'?)");
  CHECK(error("SIGTRM").find("did you mean") != std::string::npos);
  CHECK(error("") == "--signals-to-handle: '' is not the name of a signal (as in SIGTERM,SIGUSR1)");
  for (const auto* name : {"SIGKILL", "SIGSTOP", "SIGCHLD", "SIGSEGV"}) {
    CHECK(error(name) == "--signals-to-handle: " + std::string(name) +
                             " cannot be a way to ask for the end of the job (as in SIGTERM,SIGUSR1)");
  }
}
