// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acc/control/job_view.hpp"
#include "acc/control/node_view.hpp"
#include "acc/control/rank_state.hpp"

namespace acc::launcher {

/// A job and the resource use of its ranks, in the order of JobView::ranks; and its other nodes.
struct JobUsage {
  JobView job = {};
  std::vector<RankUsage> ranks = {};
  OtherNodes other_nodes = {};
};

/// The output of `acc ps`: a block per job, truncated to `width` columns. Ranks of other nodes are among
/// those of this one, by rank.
std::string job_table(const std::vector<JobUsage>& jobs, std::chrono::system_clock::time_point now,
                      int width);

/// The output of `acc ps --json`: to_json(JobView) with the resource use of each rank.
nlohmann::json job_list(const std::vector<JobUsage>& jobs);

/// All nodes of a job for a viewer on another machine: this one is among the others.
NodeReports reports_of(const JobUsage& job);

/// What a rank is doing: `data`, from a second on `data 3s`; in a collective, its name.
std::string section_text(const ProgressView& progress);

/// `12s`, `3m05s`, `2h07m`, `4d03h`.
std::string short_duration(std::chrono::milliseconds duration);

}  // namespace acc::launcher
