// SPDX-License-Identifier: Apache-2.0
// --attach: one rank has the terminal, like a program started by a shell.
#include "acc/launch/terminal_loan.hpp"

#include <signal.h>

#include "acc/launch/process_tree.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/launched.hpp"

namespace terminal_loan_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// In the foreground of a new terminal.
Streams3 on_terminal(const std::string& script = "") {
  return {.terminal_out = true, .terminal_err = true, .own_session = true, .script = script};
}

// After the job the script, in the supervisor's process group, must have the terminal again.
std::string then_look() {
  return "\"$@\"; code=$?; " + program("acc-test-stub") + " foreground echo; echo code $code";
}

}  // namespace

TEST_CASE("terminal_loan: the attached rank reads what is typed, the others do not", "[process]") {
  Launched launched(
      stub({"workers=2", "attach=1"}, {"rank", "1", "foreground", "isatty", "rank", "1", "read-line"}),
      on_terminal());
  launched.wait_for("in foreground");
  launched.type("hello\n");
  CHECK(shell_code(launched.wait()) == 0);
  CHECK(has(launched.out(), "read hello"));
  CHECK(has(launched.out(), "tty 11"));
  CHECK_FALSE(has(launched.out(), "tty 00"));  // the other wrote to its file
  CHECK(has(launched.out(), "acc: rank 1 has the terminal, the others write to "));
}

TEST_CASE("terminal_loan: Ctrl-C reaches the attached rank alone", "[process]") {
  ReportFifo reports;
  Launched launched(stub({"workers=2", "attach=0"},
                         {"on-tell", "2", reports.path(), "rank", "0", "foreground", "tell", reports.path(),
                          "up", "rank", "0", "read-line", "rank", "0", "exit", "7", "pause"}),
                    on_terminal());
  reports.next_processes(2);
  launched.wait_for("in foreground");
  launched.type("\x03");
  CHECK(reports.next() == "signal 2");
  launched.type("go on\n");
  CHECK(shell_code(launched.wait()) == 7);
  CHECK_FALSE(has(launched.out(), "SIGINT received"));
}

TEST_CASE("terminal_loan: the terminal is restored at the end of the job", "[process]") {
  Launched launched(
      stub({"workers=2", "attach=0"}, {"rank", "0", "echo-off", "rank", "0", "exit", "3", "pause"}),
      on_terminal(then_look()));
  launched.wait();
  CHECK(has(launched.out(), "in foreground\necho on\ncode 3"));
}

TEST_CASE("terminal_loan: the terminal is restored when the agent is killed", "[process]") {
  ReportFifo reports;
  Launched launched(stub({"workers=1", "attach=0"}, {"echo-off", "tell", reports.path(), "up", "pause"}),
                    on_terminal(then_look()));
  reports.next_processes(1);
  const std::vector<Descendant> below =
      descendants_of(launched.supervisor());  // supervisor, guardian, agent, worker
  REQUIRE(below.size() == 4);
  ::kill(below[2].pid, SIGKILL);
  launched.wait();
  CHECK(has(launched.out(), "in foreground\necho on\ncode 137"));
}

TEST_CASE("terminal_loan: the terminal is restored when the supervisor is killed", "[process]") {
  ReportFifo reports;
  const std::string stub_program = program("acc-test-stub");
  Launched launched(
      stub({"workers=1", "attach=0"}, {"echo-off", "tell", reports.path(), "up", "pause"}),
      on_terminal("\"$@\"; " + stub_program + " await-foreground; " + stub_program + " foreground"));
  const std::vector<Descriptor> worker = reports.next_processes(1);
  ::kill(descendants_of(launched.supervisor())[0].pid, SIGKILL);
  launched.wait();
  CHECK(all_gone(worker));
  CHECK(has(launched.out(), "in foreground\n"));
}

TEST_CASE("terminal_loan: Ctrl-Z stops the job in its shell, and fg goes on with it", "[process]") {
  ReportFifo reports;
  Launched launched(stub({"workers=2", "attach=0"},
                         {"tell", reports.path(), "up", "rank", "0", "read-line", "rank", "0", "foreground"}),
                    on_terminal("set -m; \"$@\"; echo stopped with $?; fg; echo ended with $?"));
  reports.next_processes(2);
  launched.type("\x1a");
  launched.wait_for("stopped with ");
  launched.type("more\n");
  launched.wait();
  INFO(launched.out());
  CHECK(has(launched.out(), "read more"));
  CHECK(has(launched.out(), "in foreground"));
  CHECK(has(launched.out(), "ended with 0"));
}

TEST_CASE("terminal_loan: Ctrl-Z without a shell to continue the job changes nothing", "[process]") {
  ReportFifo reports;
  Launched launched(stub({"attach=0"}, {"tell", reports.path(), "up", "read-line"}), on_terminal());
  reports.next_processes(1);
  launched.type("\x1a");
  launched.type("more\n");
  CHECK(shell_code(launched.wait()) == 0);
  CHECK(has(launched.out(), "read more"));
}

TEST_CASE("terminal: a worker of a job in the shell's background does not read it", "[process]") {
  Launched launched(stub({"workers=1"}, {"read-line", "line", "done"}),
                    on_terminal("set -m; \"$@\" & head -1; wait $!; echo ended with $?"));
  launched.wait_for("read done\n");
  launched.type("to the shell\n");
  launched.wait();
  INFO(launched.out());
  CHECK(has(launched.out(), "to the shell\nto the shell\n"));  // the terminal's echo, and what the shell read
  CHECK(has(launched.out(), "ended with 0"));
}

TEST_CASE("terminal_loan: --attach needs a terminal", "[process]") {
  const Ran ran = launch_stub({"attach=0"}, {"exit", "0"});
  CHECK(ran.code == 2);
  CHECK(ran.err == "acc: --attach: standard input is not a terminal\n");
}

}  // namespace terminal_loan_test
