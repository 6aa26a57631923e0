// SPDX-License-Identifier: Apache-2.0
// What `acc test` starts on every process: tries what a training needs, and says what works.

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/worker_env.hpp"
#include "checks.hpp"
#include "measurements.hpp"
#include "narrator.hpp"
#include "process_checks.hpp"
#include "stall.hpp"
#include "training_checks.hpp"

namespace acc::selftest {
namespace {

struct Trial {
  Check check = {};
  /// Of the Accelerator that the check gets; default: what the launcher was told.
  std::optional<MixedPrecision> precision = {};
};

constexpr std::array kTrials = {
    Trial{{"state", check_state}},
    Trial{{"process order", check_process_order}},
    Trial{{"functions by process", check_where_functions_run}},
    Trial{{"splitting", check_splitting}},
    Trial{{"trigger", check_trigger}},
    Trial{{"collectives", check_collectives}},
    Trial{{"random state", check_random_state}},
    Trial{{"sharded loading", check_sharded_loading}},
    Trial{{"shuffled loading", check_shuffled_loading}},
    Trial{{"dispatched loading", check_dispatched_loading}},
    Trial{{"dispatched shuffling", check_dispatched_shuffling}},
    Trial{{"batch sampler", check_batch_sampler}},
    Trial{{"data seed", check_data_seed}},
    Trial{{"training parity", check_training}, MixedPrecision::no},
    Trial{{"bf16 training", check_bf16_training}, MixedPrecision::bf16},
    Trial{{"fp16 training", check_fp16_training}, MixedPrecision::fp16},
    Trial{{"accumulation", check_accumulation}, MixedPrecision::no},
};

struct Options {
  int expect_processes = 0;
  bool json = false;
  double time_limit = 60;
  std::filesystem::path board = {};
};

// One step after the other, each with the same time. Who comes too late is found on the board.
class Steps {
 public:
  Steps(const WorkerEnv& worker, Board& board, Narrator& narrator, double limit)
      : worker_(worker),
        board_(board),
        narrator_(narrator),
        limit_(limit),
        watchdog_(std::chrono::milliseconds(static_cast<std::int64_t>(limit * 1000)), [this] { expire(); }) {}

  // `waits`: what comes is no work of this process but waiting for the others.
  void begin(const char* name, bool waits = false) {
    name_ = name;
    board_.come_to(worker_.local_rank, ++step_);
    if (!waits) watchdog_.restart();
  }

 private:
  [[noreturn]] void expire() {
    std::vector<Standing> ranks;
    for (const Board::Place& place : board_.places()) {
      const int rank = worker_.rank - worker_.local_rank + static_cast<int>(ranks.size());
      ranks.push_back({rank, place.pid, place.step, process_state(place.pid)});
    }
    narrator_.fail(fmt::format("'{}' did not end within {:g} s: {}", name_.load(), limit_,
                               explain_stall(ranks, worker_.world_size)));
    // The other thread hangs where nothing reaches it.
    std::_Exit(1);
  }

  const WorkerEnv& worker_;
  Board& board_;
  Narrator& narrator_;
  double limit_;
  int step_ = 0;
  std::atomic<const char*> name_ = "start";
  Watchdog watchdog_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CheckResult run_check(Steps& steps, const Trial& trial) {
  Accelerator accelerator({.mixed_precision = trial.precision});
  const Check& check = trial.check;
  steps.begin(check.name.data());
  const double began = now();
  const Complaint own = check.run(accelerator);
  const double seconds = now() - began;
  steps.begin(check.name.data(), /*waits=*/true);

  CheckResult result{.name = std::string(check.name)};
  result.seconds = accelerator.reduce(at::full({}, seconds, at::kDouble), ReduceOp::max).item<double>();
  const std::vector<std::string> complaints = gather_texts(accelerator, own);
  for (std::size_t rank = 0; rank < complaints.size() && result.complaint.empty(); ++rank) {
    if (!complaints[rank].empty()) result.complaint = fmt::format("rank {}: {}", rank, complaints[rank]);
  }
  return result;
}

// Joins the job. The group is the one of all Accelerators of this process, as long as it lives.
std::shared_ptr<ProcessGroup> join(const Options& options, Narrator& narrator) {
  // The time limit is the first to notice, since it can say who is missing.
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(options.time_limit * 2000));
  const Accelerator accelerator({.process_group = {.timeout = timeout}});
  const int processes = accelerator.num_processes();
  narrator.begin({.num_processes = processes,
                  .device = accelerator.device().str(),
                  .mixed_precision = std::string(to_string(accelerator.mixed_precision()))});
  if (options.expect_processes > 0 && processes != options.expect_processes) {
    throw Error({.what = fmt::format("runs on {} process{}, not on {}", processes, processes == 1 ? "" : "es",
                                     options.expect_processes)});
  }
  return accelerator.process_group();
}

Report measure(Steps& steps) {
  Accelerator accelerator;
  Report measured;
  steps.begin("links");
  measured.links = measure_links(accelerator);
  steps.begin("all-reduce");
  measured.all_reduces = measure_all_reduce(accelerator);
  steps.begin("matmul");
  measured.matmuls = measure_matmul(accelerator);
  return measured;
}

bool run(const Options& options, Steps& steps, Narrator& narrator) {
  steps.begin("join");
  const std::shared_ptr<ProcessGroup> group = join(options, narrator);
  for (const Trial& trial : kTrials) narrator.add(run_check(steps, trial));
  return narrator.finish(measure(steps));
}

// What ends the test early, in a line.
std::string reason(const std::exception& error) {
  if (const auto* from_torch = dynamic_cast<const c10::Error*>(&error))
    return std::string("LibTorch: ") + from_torch->what_without_backtrace();
  return error.what();
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Checks on every process what a training needs; `acc test` starts it");
  app.add_option("--expect-processes", options.expect_processes, "Fail unless there are this many processes")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "One JSON object instead of text");
  app.add_option("--time-limit", options.time_limit, "Seconds that each step may take (60)")
      ->check(CLI::PositiveNumber);
  app.add_option("--board", options.board, "A file in which the ranks of a machine see how far each one is");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // There LibTorch 2.9's Gloo says whom it is connected to, amid the report, which is written with C's
  // functions.
  std::cout.rdbuf(nullptr);
  const WorkerEnv worker = read_worker_env(Environment::of_process());
  Board board(options.board, worker.local_world_size);
  Narrator narrator(board, worker.rank == 0, options.json);
  Steps steps(worker, board, narrator, options.time_limit);
  try {
    return run(options, steps, narrator) ? 0 : 1;
  } catch (const std::exception& error) {
    narrator.fail(reason(error));
    return 1;
  }
}

}  // namespace
}  // namespace acc::selftest

int main(int argc, char** argv) try {
  return acc::selftest::run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "acc-selftest: %s\n", error.what());
  return 1;
}
