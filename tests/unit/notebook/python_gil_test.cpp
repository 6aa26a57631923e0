// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/python_gil.hpp"

#include "support/catch.hpp"

namespace python_gil_test {

namespace {

int held = 0;
void* restored = nullptr;
int state = 0;

}  // namespace

// Python's functions, which the test's program exports as a Python would.
extern "C" {
[[gnu::visibility("default")]] int PyGILState_Check() {
  return held;
}
[[gnu::visibility("default")]] void* PyEval_SaveThread() {
  held = 0;
  return &state;
}
[[gnu::visibility("default")]] void PyEval_RestoreThread(void* thread_state) {
  held = 1;
  restored = thread_state;
}
}

using acc::detail::WithoutGil;

TEST_CASE("python_gil: the lock is released while it lives, and taken back", "[notebook]") {
  held = 1;
  restored = nullptr;
  {
    const WithoutGil others_may_run;
    CHECK(held == 0);
  }
  CHECK(held == 1);
  CHECK(restored == &state);
}

TEST_CASE("python_gil: a thread that does not hold the lock takes none", "[notebook]") {
  held = 0;
  restored = nullptr;
  {
    const WithoutGil others_may_run;
  }
  CHECK(held == 0);
  CHECK(restored == nullptr);
}

}  // namespace python_gil_test
