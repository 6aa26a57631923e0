// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/process_tree.hpp"

#include <unistd.h>

#include <csignal>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace process_tree_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("descendants: the whole tree, parents first, with any names", "[launch]") {
  const test::TemporaryFolder proc;
  proc.write("10/stat", "10 (acc) S 1 10 10");
  proc.write("11/stat", "11 (a) b (c)) R 10 11");
  proc.write("9/stat", "9 (child of 11) S 11 9");
  proc.write("12/stat", "12 (other) S 1 12");
  proc.write("13/stat", "13 (zombie) Z 10 13");
  proc.write("14/stat", "");
  proc.write("self/stat", "10 (acc) S 1 10 10");
  CHECK(descendants_of(10, proc.path()) == std::vector<Descendant>{{11, 10}, {13, 10}, {9, 11}});
  CHECK(descendants_of(12, proc.path()).empty());
}

TEST_CASE("descendants: this process is one of its parent's", "[launch]") {
  const auto found = descendants_of(::getppid());
  const Descendant self = {::getpid(), ::getppid()};
  CHECK(std::find(found.begin(), found.end(), self) != found.end());
}

TEST_CASE("descendants: other processes are not signalled", "[launch]") {
  CHECK_FALSE(signal_descendant({.pid = ::getpid(), .parent = 1 << 22}, 0));
  CHECK_FALSE(signal_descendant({.pid = 1 << 22, .parent = ::getpid()}, 0));
  CHECK(signal_descendant({.pid = ::getpid(), .parent = ::getppid()}, 0));
}

TEST_CASE("descendants: without children there is nothing to reap or kill", "[launch]") {
  CHECK_FALSE(reap_orphans([](pid_t) { return false; }));
  CHECK_FALSE(kill_descendants());
}

TEST_CASE("handles_signal: a handler, or all threads wait for the signal", "[launch]") {
  const test::TemporaryFolder proc;
  const std::string nothing =
      "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000200\nSigCgt:\t0000000000000000\n";
  const std::string catches =
      "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000180004002\n";
  const std::string blocks =
      "SigBlk:\t0000000000000200\nSigIgn:\t0000000000000200\nSigCgt:\t0000000000000000\n";
  proc.write("10/status", nothing);
  proc.write("10/task/10/status", nothing);
  proc.write("11/status", "Name:\tSigCgt: ff\n" + catches);
  proc.write("12/status", blocks);
  proc.write("12/task/12/status", blocks);
  proc.write("12/task/13/status", blocks);
  proc.write("14/status", blocks);
  proc.write("14/task/14/status", blocks);
  proc.write("14/task/15/status", nothing);
  const auto handles = [&](pid_t pid, int signal) { return handles_signal(pid, signal, proc.path()); };
  CHECK_FALSE(handles(10, SIGUSR1));
  CHECK(handles(11, SIGTERM));
  CHECK_FALSE(handles(11, SIGUSR1));
  CHECK(handles(12, SIGUSR1));
  CHECK_FALSE(handles(12, SIGUSR2));
  CHECK_FALSE(handles(14, SIGUSR1));
  CHECK_FALSE(handles(99, SIGUSR1));
}

}  // namespace process_tree_test
