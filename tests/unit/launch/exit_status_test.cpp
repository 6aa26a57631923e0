// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/exit_status.hpp"

#include <csignal>

#include "support/catch.hpp"

namespace exit_status_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("exit_status: a shell's code is the process's own or 128 + signal", "[launch]") {
  CHECK(shell_code(Exited{0}) == 0);
  CHECK(shell_code(Exited{255}) == 255);
  CHECK(shell_code(Signaled{SIGKILL}) == 137);
}

TEST_CASE("exit_status: exit 9 is not signal 9", "[launch]") {
  CHECK(to_exit_status(9 << 8) == ExitStatus(Exited{9}));
  CHECK(to_exit_status(9) == ExitStatus(Signaled{9}));
  CHECK(to_exit_status(11 | 0x80) == ExitStatus(Signaled{11, true}));
}

TEST_CASE("exit_status: is formatted with name and number", "[launch]") {
  CHECK(to_string(Exited{5}) == "exit code 5");
  CHECK(to_string(Signaled{SIGSEGV, true}) == "signal 11 (SIGSEGV, core dumped)");
  CHECK(to_string(Signaled{SIGTERM}) == "signal 15 (SIGTERM)");
  CHECK(signal_name(SIGRTMAX) == "SIGRTMAX");
  CHECK(signal_name(SIGRTMIN + 3) == "signal 37");
}

TEST_CASE("exit_status: only exit code 0 is success", "[launch]") {
  CHECK(succeeded(Exited{0}));
  CHECK_FALSE(succeeded(Exited{1}));
  CHECK_FALSE(succeeded(Signaled{0}));
}

}  // namespace exit_status_test
