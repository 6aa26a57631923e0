// SPDX-License-Identifier: Apache-2.0
// A program that launches workers from within, for tests that signal or kill it. `notebook_caller CASE ...`;
// each worker of a case that waits says `ready PID` first.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "acc/error.hpp"
#include "acc/notebook.hpp"
#include "acc/process.hpp"

namespace {

void wait_for_end() {
  std::printf("ready %d\n", int(::getpid()));
  for (;;) ::pause();
}

template <class Launch>
void say_error(Launch launch) {
  try {
    launch();
  } catch (const acc::Error& error) {
    std::printf("error: %s\n", error.what());
  }
}

// The caller goes on after an interrupt.
void interrupted() {
  say_error([] { acc::notebook_launcher(wait_for_end, {.num_processes = 2}); });
  const auto ranks = acc::debug_launcher([] {
    const acc::PartialState state;
    state.wait_for_everyone();
    return state.process_index();
  });
  for (const int rank : ranks) std::printf("then rank %d\n", rank);
}

void deaf() {
  say_error([] {
    acc::notebook_launcher(
        [] {
          std::signal(SIGTERM, SIG_IGN);
          std::signal(SIGINT, SIG_IGN);
          wait_for_end();
        },
        {.num_processes = 2, .shutdown_timeout = std::chrono::milliseconds(200)});
  });
}

void lines(int count) {
  acc::notebook_launcher(
      [count] {
        const acc::PartialState state;
        const int rank = state.process_index();
        for (int line = 0; line < count; ++line) std::printf("rank %d line %d of %d\n", rank, line, count);
        state.wait_for_everyone();
      },
      {.num_processes = 2});
}

// The worker ends when whoever reads its line answers.
void live() {
  acc::notebook_launcher(
      [] {
        std::printf("ready %d\n", int(::getpid()));
        std::getchar();
      },
      {.num_processes = 1});
}

void node(int rank, int port) {
  say_error([&] {
    const auto sums = acc::notebook_launcher(
        [] {
          const acc::PartialState state;
          const auto ranks = state.gather_object(std::vector{state.process_index()});
          return std::to_string(state.process_index()) + " of " + std::to_string(ranks.size());
        },
        {.num_processes = 2, .use_port = std::uint16_t(port), .node_rank = rank, .num_nodes = 2});
    for (const std::string& sum : sums) std::printf("%s\n", sum.c_str());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const auto number = [&](int index) { return argc > index ? std::atoi(argv[index]) : 0; };
  if (name == "interrupted") interrupted();
  if (name == "deaf") deaf();
  if (name == "waits") say_error([] { acc::notebook_launcher(wait_for_end, {.num_processes = 2}); });
  if (name == "lines") lines(number(2));
  if (name == "live") live();
  if (name == "node") node(number(2), number(3));
  return 0;
}
