// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/child_answer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace child_answer_test {

using namespace acc;
using namespace std::chrono_literals;

namespace {

auto writer_of(std::string text) {
  return [text = std::move(text)](int to) { write_all(to, text); };
}

/// In a process of its own, which the children end with.
void check_in_child(const std::function<bool()>& holds) {
  CHECK(test::in_child([&] { return holds() ? 0 : 1; }) == 0);
}

}  // namespace

TEST_CASE("child_answer: has all that the child wrote", "[base]") {
  check_in_child([] {
    boost::asio::io_context loop(1);
    ChildAnswer child(loop);
    std::string text;
    child.ask(writer_of(std::string(100'000, 'x') + "end"), 1min,
              [&](const ChildAnswer::Answer& answer) { text = answer.text + answer.problem; });
    const bool waited = child.is_waiting();
    loop.run();
    return waited && !child.is_waiting() && text == std::string(100'000, 'x') + "end";
  });
}

TEST_CASE("child_answer: a child that blocks is killed, and known until it has ended", "[base]") {
  check_in_child([] {
    boost::asio::io_context loop(1);
    ChildAnswer child(loop);
    std::string problem;
    child.ask([](int) { ::pause(); }, 1ms,
              [&](const ChildAnswer::Answer& answer) { problem = answer.problem; });
    loop.run();
    const bool waits_for_end = child.is_waiting();
    while (::waitpid(-1, nullptr, 0) < 0 && errno == EINTR) {
    }
    return problem == "there was no answer in time" && waits_for_end && !child.is_waiting();
  });
}

TEST_CASE("child_answer: a child that is interrupted may still answer", "[base]") {
  check_in_child([] {
    boost::asio::io_context loop(1);
    ChildAnswer child(loop);
    std::string text;
    child.ask(
        [](int to) {
          sigset_t sigterm = {};
          ::sigemptyset(&sigterm);
          ::sigaddset(&sigterm, SIGTERM);
          ::sigprocmask(SIG_BLOCK, &sigterm, nullptr);
          write_all(to, "waits,");
          int signal = 0;
          ::sigwait(&sigterm, &signal);
          write_all(to, "ends");
        },
        1min, [&](const ChildAnswer::Answer& answer) { text = answer.text + answer.problem; });
    loop.run_one();
    child.interrupt(SIGTERM, 1min);
    loop.run();
    return text == "waits,ends";
  });
}

TEST_CASE("child_answer: a child that is interrupted and does not end is killed", "[base]") {
  check_in_child([] {
    boost::asio::io_context loop(1);
    ChildAnswer child(loop);
    std::string problem;
    child.ask(
        [](int to) {
          ::signal(SIGTERM, SIG_IGN);
          write_all(to, "waits");
          for (;;) ::pause();
        },
        1h, [&](const ChildAnswer::Answer& answer) { problem = answer.problem; });
    loop.run_one();
    child.interrupt(SIGTERM, 1ms);
    loop.run();
    return problem == "there was no answer in time";
  });
}

TEST_CASE("child_answer: what was asked before does not arrive any more", "[base]") {
  check_in_child([] {
    boost::asio::io_context loop(1);
    ChildAnswer child(loop);
    std::string answers;
    for (const char* text : {"first", "second"})
      child.ask(writer_of(text), 1min, [&](const ChildAnswer::Answer& answer) { answers += answer.text; });
    loop.run();
    return answers == "second";
  });
}

}  // namespace child_answer_test
