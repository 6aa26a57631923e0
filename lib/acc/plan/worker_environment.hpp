// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/rendezvous_plan.hpp"

namespace acc::launcher {

/// The facts that are known only when an attempt starts.
struct Attempt {
  int number = 0;
  Round round = {};
  /// The folder `<run folder>/attempt_N`; empty: workers get no error file.
  std::string folder = {};
  /// Where workers say how far they are, each in `progress` and its local rank; empty: nowhere.
  std::string progress = {};
};

/// The round of a job in which every node runs as many workers as this one.
Round expected_round(const LaunchPlan& plan);

/// The ranks of a local worker in the job.
WorkerEnv worker_env_of(const LaunchPlan& plan, int local_rank, const Attempt& attempt);

/// The variables of a local worker in addition to the inherited environment.
Environment worker_environment(const LaunchPlan& plan, int local_rank, const Attempt& attempt);

/// The argv of a local worker: `$local_rank` and `${local_rank}` are expanded, `$$local_rank` and
/// `$${local_rank}` lose one `$`. Any other `$` and the name of the program are not changed, nor is anything
/// where workers get no ranks.
std::vector<std::string> worker_command(const LaunchPlan& plan, int local_rank);

/// The Python that runs the script with its origin, as in `/usr/bin/python3 (PATH)`; empty if none does.
std::string interpreter_text(const LaunchPlan& plan);

}  // namespace acc::launcher
