// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "acc/control/job_view.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// The destinations of a worker's stdout and stderr.
using StreamDestinations = std::pair<StreamDestination, StreamDestination>;

/// Keeps the JobView of a running job up to date from its events.
class JobStatus : public Reporter {
 public:
  /// `destinations` is called when a worker has started.
  JobStatus(JobView job, std::function<StreamDestinations(int local_rank)> destinations)
      : view_(std::move(job)), destinations_(std::move(destinations)) {}

  /// Called when a worker has started and the view shows it.
  void on_started(std::function<void(const RankView&)> started) { started_ = std::move(started); }

  void report(const Event& event) override;

  const JobView& view() const { return view_; }

 private:
  JobView view_;
  std::function<StreamDestinations(int local_rank)> destinations_;
  std::function<void(const RankView&)> started_ = [](const RankView&) {};
};

/// What a worker says in its page, `page_prefix` followed by the local rank; an empty prefix: it has none.
std::optional<Progress> read_page(const std::string& page_prefix, int local_rank);

/// The same, or what it has said before it ended.
std::optional<Progress> read_last_page(const std::string& page_prefix, int local_rank);

/// What the running ones say, into the view.
void read_progress(JobView& job, const std::string& page_prefix);

/// The view of a job whose workers have not started.
JobView view_of(const LaunchPlan& plan, pid_t supervisor, pid_t agent);

}  // namespace acc::launcher
