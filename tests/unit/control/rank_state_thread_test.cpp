// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <unistd.h>

#include "acc/control/rank_state.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace rank_state_thread_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

void write_thread(const TemporaryFolder& proc, const std::string& id, char state, const std::string& call,
                  const std::string& kernel) {
  const std::string folder = "7/task/" + id + "/";
  proc.write(folder + "stat", id + " (name " + id + ") " + state +
                                  " 1 1 1 0 -1 0 0 0 0 0 5 6 7 8 20 0 3 0 200 4096 16 0 0 0\n");
  proc.write(folder + "syscall", call);
  proc.write(folder + "wchan", kernel);
}

}  // namespace

TEST_CASE("rank_state: shows what each thread of a process waits for", "[control]") {
  const TemporaryFolder proc;
  write_thread(proc, "12", 'S', std::to_string(SYS_futex) + " 0x1 0x2\n", "futex_wait_queue");
  write_thread(proc, "7", 'R', "running\n", "0");
  const std::vector<ThreadWait> threads = threads_of(7, proc.path());
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].id == 7);
  CHECK(to_string(threads[0]) == "running");
  CHECK(threads[1].name == "name 12");
  CHECK(to_string(threads[1]) == "sleeping in futex (futex_wait_queue)");
  CHECK(threads_of(8, proc.path()).empty());
}

TEST_CASE("thread_wait: shows what the kernel tells", "[control]") {
  CHECK(to_string({.state = 'S'}) == "sleeping");
  CHECK(to_string({.state = 'S', .kernel = "pipe_read"}) == "sleeping in pipe_read");
  CHECK(to_string({.state = 'D', .call = "read"}) == "waiting for a device in read");
  CHECK(to_string({.state = 'T', .call = "read", .kernel = "do_signal_stop"}) == "stopped");
}

TEST_CASE("thread_wait: an unknown system call is a number", "[control]") {
  CHECK(name_of_call(SYS_clock_nanosleep) == "clock_nanosleep");
  CHECK(name_of_call(99999) == "system call 99999");
}

TEST_CASE("thread_wait: this thread runs", "[control]") {
  const std::vector<ThreadWait> threads = threads_of(::getpid());
  REQUIRE_FALSE(threads.empty());
  CHECK(threads[0].state == 'R');
}

}  // namespace rank_state_thread_test
