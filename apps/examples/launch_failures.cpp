// SPDX-License-Identifier: Apache-2.0
// What a program that launches workers sees of a failure, of restarts and of a test run; and the config file
// for `acc launch`.
//
//   launch_failures [CONFIG.json]
#include <cstdio>
#include <stdexcept>

#include "acc/error.hpp"
#include "acc/notebook.hpp"
#include "acc/process.hpp"

int main(int argc, char** argv) try {
  const std::filesystem::path config_file = argc > 1 ? argv[1] : "config.json";

  // begin config
  if (const auto file = acc::write_basic_config("bf16", config_file))
    std::printf("wrote %s\n", file->filename().c_str());
  // end config

  // begin failure
  try {
    acc::notebook_launcher(
        [] {
          const acc::PartialState state;
          if (state.process_index() == 1) throw std::runtime_error("no data");
          state.wait_for_everyone();
        },
        {.num_processes = 2});
  } catch (const acc::Error& error) {
    std::printf("%s\n", error.what());  // rank 1: std::runtime_error: no data
  }
  // end failure

  // begin restarts
  const std::vector<int> restarts = acc::notebook_launcher(
      [] {
        const acc::PartialState state;
        const int restart = state.worker().restart_count;
        if (restart == 0) throw std::runtime_error("the first attempt fails");
        state.wait_for_everyone();
        return restart;
      },
      {.num_processes = 2, .max_restarts = 3, .log_dir = "logs", .tee = "3"});
  // end restarts
  std::printf("restarts: %d\n", restarts.at(0));

  // begin debug
  const std::vector<int> sums = acc::debug_launcher(
      [](int base) {
        const acc::PartialState state;
        const std::vector<int> ranks = state.gather_object(std::vector{state.process_index()});
        return base + ranks.at(0) + ranks.at(1);
      },
      std::tuple{40}, 2);
  // end debug
  std::printf("sums: %d %d\n", sums.at(0), sums.at(1));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
