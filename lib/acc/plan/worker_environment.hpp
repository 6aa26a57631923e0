// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/round.hpp"

namespace acc::launcher {

/// What is known only when an attempt begins.
struct Attempt {
  int number = 0;
  Round round = {};
  /// `<run folder>/attempt_N`; empty: workers get no error file.
  std::string folder = {};
};

/// The round that a job has when each of its nodes runs as many workers as this one.
Round expected_round(const LaunchPlan& plan);

/// The place of one local worker in the job.
WorkerEnv place_of_worker(const LaunchPlan& plan, int local_rank, const Attempt& attempt);

/// What one local worker gets on top of the inherited environment.
Environment worker_environment(const LaunchPlan& plan, int local_rank, const Attempt& attempt);

/// argv of one local worker: `$local_rank` and `${local_rank}` become the number, `$$local_rank` and
/// `$${local_rank}` lose one `$`; every other `$` stays as it is, and so does the program's name.
std::vector<std::string> worker_command(const LaunchPlan& plan, int local_rank);

}  // namespace acc::launcher
