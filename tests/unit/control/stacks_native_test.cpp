// SPDX-License-Identifier: Apache-2.0
#include "acc/control/stacks.hpp"
#include "support/catch.hpp"

namespace stacks_native_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("native_stacks: threads with the same stack are one block, the main thread's first", "[control]") {
  CHECK(shorten_native_stacks(R"([New LWP 12]
[Thread debugging using libthread_db enabled]
0x00007f in wait () from /lib/libc.so.6

Thread 4 (Thread 0x7f4 (LWP 14) "pool"):
#0  0x00007f11 in poll (fds=0x1, nfds=2) from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f12 in work () at pool.cpp:7

Thread 3 (Thread 0x7f3 (LWP 13) "pool"):
#0  0x00007f21 in poll (fds=0x3, nfds=4) from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f22 in work () at pool.cpp:7

Thread 1 (Thread 0x7f1 (LWP 11) "train"):
#0  main (argc=1, argv=0x7ff) at train.cpp:12
[Inferior 1 (process 11) detached]
)") == "Thread 1:\n"
       "  #0  main at train.cpp:12\n"
       "Threads 3, 4:\n"
       "  #0  poll from libc.so.6\n"
       "  #1  work at pool.cpp:7\n");
}

TEST_CASE("native_stacks: frames below Python's interpreter are left out", "[control]") {
  CHECK(shorten_native_stacks(
            "Thread 1 (LWP 1):\n#0  0x1 in sleep () from /lib/libc.so.6\n"
            "#1  0x2 in _PyEval_EvalFrameDefault () from /lib/libpython3.so\n#2  0x3 in main ()\n"
            "Thread 2 (LWP 2):\n#0  0x1 in poll () from /lib/libc.so.6\n") ==
        "Thread 1:\n"
        "  #0  sleep from libc.so.6\n"
        "  ... called by Python code\n"
        "Thread 2:\n"
        "  #0  poll from libc.so.6\n");
}

TEST_CASE("native_stacks: gdb's reason for showing none", "[control]") {
  const char* refused =
      "warning: x\nCould not attach to process.  If your uid ...\nptrace: Operation not permitted.\n";
  CHECK(shorten_native_stacks(refused).empty());
  CHECK(native_stacks_problem(refused).starts_with("Could not attach to process."));
  CHECK(native_stacks_problem("ptrace: No such process.\n") == "ptrace: No such process.");
  CHECK(native_stacks_problem("\n") == "gdb printed nothing");
}

}  // namespace stacks_native_test
