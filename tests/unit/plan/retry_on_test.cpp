// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/retry_on.hpp"

#include <csignal>

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_retry_on;
using acc::launcher::RetryOn;

TEST_CASE("retry_on: what is named is worth a restart, and nothing else", "[plan]") {
  CHECK(parse_retry_on("1, 64-66,SIGKILL,oom", "") ==
        RetryOn{.everything = false,
                .worth = {.exit_codes = {1, 64, 65, 66}, .signals = {SIGKILL}, .oom = true}});
  CHECK(parse_retry_on("signal", "") == RetryOn{.everything = false, .worth = {.any_signal = true}});
}

TEST_CASE("retry_on: with exclusions alone the rest is worth it", "[plan]") {
  CHECK(parse_retry_on("!2,!SIGSEGV", "") == RetryOn{.not_worth = {.exit_codes = {2}, .signals = {SIGSEGV}}});
  CHECK(parse_retry_on("all,!oom", "") == RetryOn{.not_worth = {.oom = true}});
  CHECK(parse_retry_on("all", "") == RetryOn{});
}

TEST_CASE("retry_on: what is no way to fail is refused", "[plan]") {
  for (const auto* text : {"", "0", "256", "9-3", "KILL", "1,", "!", "!all", "x"}) {
    CHECK(acc::test::error_of([&] { parse_retry_on(text, "--retry-on"); }).find("is no way to fail") !=
          std::string::npos);
  }
  CHECK(acc::test::error_of([] { parse_retry_on("0", "--retry-on"); }) ==
        "--retry-on: '0' is no way to fail (exit codes, names of signals, signal, oom, all; ! in front "
        "excludes, as "
        "in signal,!SIGSEGV,75)");
}
