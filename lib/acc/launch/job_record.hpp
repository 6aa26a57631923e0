// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "acc/control/job_view.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Where both streams of a worker go.
using StreamPlaces = std::pair<StreamPlace, StreamPlace>;

/// What others may see of a job, kept current by what the job tells.
class JobRecord : public Reporter {
 public:
  /// `places` is asked when a worker has started.
  JobRecord(JobView job, std::function<StreamPlaces(int local_rank)> places)
      : view_(std::move(job)), places_(std::move(places)) {}

  /// Called when a worker has started and the view shows it.
  void on_started(std::function<void(const RankView&)> started) { started_ = std::move(started); }

  void report(const Event& event) override;

  const JobView& view() const { return view_; }

 private:
  JobView view_;
  std::function<StreamPlaces(int local_rank)> places_;
  std::function<void(const RankView&)> started_ = [](const RankView&) {};
};

/// The view of a job whose workers have not started. `front`: the process that the user started.
JobView view_of(const LaunchPlan& plan, pid_t front, pid_t agent);

}  // namespace acc::launcher
