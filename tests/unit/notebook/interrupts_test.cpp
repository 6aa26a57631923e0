// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/interrupts.hpp"

#include <poll.h>

#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace interrupts_test {

using namespace acc::detail;
using namespace acc::test;

namespace {

int handled = 0;

void handle(int /*signal*/) {
  ++handled;
}

bool has_come(const Interrupts& interrupts) {
  pollfd event = {interrupts.descriptor(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

}  // namespace

// In a child: Catch2 has handlers of its own.
TEST_CASE("interrupts: SIGINT is seen here, then by the program's handler once", "[notebook]") {
  CHECK(in_child([] {
          ::signal(SIGINT, handle);
          Interrupts interrupts;
          if (has_come(interrupts)) return 10;
          ::raise(SIGINT);
          ::raise(SIGINT);
          if (!has_come(interrupts) || handled != 0) return 11;
          interrupts.acknowledge();
          if (has_come(interrupts)) return 12;
          interrupts.pass_on();
          if (handled != 1) return 13;
          ::raise(SIGINT);
          return handled == 2 ? 0 : 14;
        }) == 0);
}

TEST_CASE("interrupts: a program without a handler survives, and dies of the next one", "[notebook]") {
  CHECK(in_child([] {
          ::signal(SIGINT, SIG_DFL);
          {
            Interrupts interrupts;
            ::raise(SIGINT);
            interrupts.pass_on();
          }
          struct sigaction now = {};
          ::sigaction(SIGINT, nullptr, &now);
          return now.sa_handler == SIG_DFL ? 0 : 10;
        }) == 0);
}

TEST_CASE("interrupts: where SIGINT is ignored, it stays so", "[notebook]") {
  CHECK(in_child([] {
          ::signal(SIGINT, SIG_IGN);
          const Interrupts interrupts;
          ::raise(SIGINT);
          return has_come(interrupts) ? 10 : 0;
        }) == 0);
}

}  // namespace interrupts_test
