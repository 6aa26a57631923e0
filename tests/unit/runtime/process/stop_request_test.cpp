// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/stop_request.hpp"

#include <csignal>

#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace stop_request_test {

using acc::detail::note_stop_signals;
using acc::detail::stop_was_requested;

namespace {

// Whether a process of its own notes the signal after `prepare`; it ends by a signal that it does not handle.
template <class Prepare>
bool notes(int signal, Prepare prepare) {
  return acc::test::in_child([&] {
           std::signal(signal, SIG_DFL);  // Catch handles SIGTERM.
           prepare();
           note_stop_signals();
           note_stop_signals();
           if (stop_was_requested()) return 2;
           std::raise(signal);
           return stop_was_requested() ? 1 : 0;
         }) == 1;
}

}  // namespace

TEST_CASE("stop_request: the signals of launchers and engines are noted", "[runtime]") {
  const int signal = GENERATE(SIGTERM, SIGUSR1, SIGUSR2);
  // Catch handles SIGTERM.
  CHECK(notes(signal, [&] { std::signal(signal, SIG_DFL); }));
}

TEST_CASE("stop_request: notices that a launcher let the process ignore are noted, an ignored SIGTERM is not",
          "[runtime]") {
  CHECK(notes(SIGUSR1, [] { std::signal(SIGUSR1, SIG_IGN); }));
  CHECK(notes(SIGUSR2, [] { std::signal(SIGUSR2, SIG_IGN); }));
  CHECK_FALSE(notes(SIGTERM, [] { std::signal(SIGTERM, SIG_IGN); }));
}

TEST_CASE("stop_request: a handler of the program stays", "[runtime]") {
  const int signal = GENERATE(SIGTERM, SIGUSR1);
  CHECK_FALSE(notes(signal, [&] { std::signal(signal, [](int) {}); }));
}

}  // namespace stop_request_test
