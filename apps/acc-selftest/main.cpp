// SPDX-License-Identifier: Apache-2.0
// The program that `acc test` starts on every process: checks and measures everything that training needs.

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/version.h>

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
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/record.hpp"
#include "checks.hpp"
#include "measurements.hpp"
#include "progress.hpp"
#include "reporter.hpp"

namespace acc::selftest {
namespace {

struct Trial {
  Check check = {};
  /// The Accelerator's precision; default: what the launcher set.
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
  std::filesystem::path progress_file = {};
  std::filesystem::path report_file = {};
};

// Runs the steps, each with the same time limit. If a step takes longer, reports the ranks that are late
// according to the progress board.
class Steps {
 public:
  Steps(const WorkerEnv& worker, ProgressBoard& board, Reporter& reporter, double limit)
      : worker_(worker),
        board_(board),
        reporter_(reporter),
        limit_(limit),
        watchdog_(to_milliseconds(limit), [this] { expire(); }) {}

  // If `waits`, the step only waits for the other processes, within the time limit of the step before.
  void begin(const char* name, bool waits = false) {
    name_ = name;
    board_.set_step(worker_.local_rank, ++step_);
    if (!waits) watchdog_.restart();
  }

 private:
  [[noreturn]] void expire() {
    std::vector<RankProgress> ranks;
    for (const ProgressBoard::Progress& progress : board_.progress()) {
      const int rank = worker_.rank - worker_.local_rank + static_cast<int>(ranks.size());
      ranks.push_back({rank, progress.pid, progress.step, process_state(progress.pid)});
    }
    reporter_.fail(fmt::format("'{}' did not end within {:g} s: {}", name_.load(), limit_,
                               explain_stall(ranks, worker_.world_size)));
    // The main thread hangs and cannot be interrupted, so the process exits here.
    std::_Exit(1);
  }

  const WorkerEnv& worker_;
  ProgressBoard& board_;
  Reporter& reporter_;
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
  const Failure failure = check.run(accelerator);
  const double seconds = now() - began;
  steps.begin(check.name.data(), /*waits=*/true);

  CheckResult result{.name = std::string(check.name)};
  result.seconds = accelerator.reduce(at::full({}, seconds, at::kDouble), ReduceOp::max).item<double>();
  const std::vector<std::string> failures = gather_texts(accelerator, failure);
  for (std::size_t rank = 0; rank < failures.size() && result.failure.empty(); ++rank) {
    if (!failures[rank].empty()) result.failure = fmt::format("rank {}: {}", rank, failures[rank]);
  }
  return result;
}

// Joins the job. While the returned group exists, all Accelerators of this process use it.
std::shared_ptr<ProcessGroup> join(const Options& options, Reporter& reporter) {
  // The timeout is longer than the time limit, whose error names the missing ranks.
  const std::chrono::milliseconds timeout = to_milliseconds(2 * options.time_limit);
  const Accelerator accelerator({.process_group = {.timeout = timeout}});
  const int processes = accelerator.num_processes();
  reporter.begin({.num_processes = processes,
                  .device = accelerator.device().str(),
                  .mixed_precision = std::string(to_string(accelerator.mixed_precision())),
                  .torch = TORCH_VERSION});
  if (options.expect_processes > 0 && processes != options.expect_processes) {
    throw Error({.what = fmt::format("runs on {}, not on {}", pluralize(processes, "process"),
                                     options.expect_processes)});
  }
  return accelerator.process_group();
}

void measure(Steps& steps, Reporter& reporter) {
  Accelerator accelerator;
  steps.begin("links");
  reporter.set(&Report::hosts, gather_texts(accelerator, host_name()));
  reporter.set(&Report::links, measure_links(accelerator));
  steps.begin("all-reduce");
  reporter.set(&Report::all_reduces, measure_all_reduce(accelerator));
  steps.begin("memory");
  reporter.set(&Report::copies, measure_copy(accelerator));
  steps.begin("matmul");
  reporter.set(&Report::matmuls, measure_matmul(accelerator));
}

// The text of an exception that ends the test.
std::string reason(const std::exception& error) {
  if (const auto* from_torch = dynamic_cast<const c10::Error*>(&error))
    return std::string("LibTorch: ") + from_torch->what_without_backtrace();
  return error.what();
}

bool test(Steps& steps, Reporter& reporter) {
  for (const Trial& trial : kTrials) reporter.add(run_check(steps, trial));
  measure(steps, reporter);
  return reporter.finish();
}

// A failure is told while the group is still there: when it goes, the other ranks lose this one, and the
// first to tell is the one that is reported.
bool run(const Options& options, Steps& steps, Reporter& reporter) {
  steps.begin("join");
  const std::shared_ptr<ProcessGroup> group = join(options, reporter);
  try {
    return record([&] { return test(steps, reporter); });
  } catch (const std::exception& error) {
    reporter.fail(reason(error));
    return false;
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Checks on every process everything that training needs; started by `acc test`");
  app.add_option("--expect-processes", options.expect_processes, "Fail unless there are this many processes")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "Write one JSON object instead of text");
  app.add_option("--time-limit", options.time_limit, "Maximum seconds for each step (60)")
      ->check(CLI::PositiveNumber);
  app.add_option("--progress-file", options.progress_file,
                 "The file in which the ranks of a machine share their progress");
  app.add_option("--report-file", options.report_file,
                 "Also write the JSON object to this file, which exists");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // LibTorch 2.9's Gloo logs its connections to std::cout: discards them. The report is written with stdio.
  std::cout.rdbuf(nullptr);
  const WorkerEnv worker = read_worker_env(Environment::of_process());
  ProgressBoard board(options.progress_file, worker.local_world_size);
  Reporter reporter(board, worker.rank == 0, options.json, options.report_file);
  Steps steps(worker, board, reporter, options.time_limit);
  try {
    return run(options, steps, reporter) ? 0 : 1;
  } catch (const std::exception& error) {
    reporter.fail(reason(error));
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
