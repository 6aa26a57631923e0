// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/job_status.hpp"

#include "acc/base/progress_page.hpp"

namespace acc::launcher {

void JobStatus::report(const Event& event) {
  if (const auto* attempt = std::get_if<AttemptStarted>(&event)) {
    view_.attempt = attempt->attempt;
    view_.world_size = attempt->round.world_size;
    view_.ranks.clear();
  } else if (const auto* started = std::get_if<WorkerStarted>(&event)) {
    auto [out, err] = destinations_(started->local_rank);
    view_.ranks.push_back({.rank = started->rank,
                           .local_rank = started->local_rank,
                           .pid = started->pid,
                           .pid_inside = started->pid_inside,
                           .out = std::move(out),
                           .err = std::move(err)});
    started_(view_.ranks.back());
  } else if (const auto* finished = std::get_if<WorkerFinished>(&event)) {
    for (RankView& rank : view_.ranks) {
      if (rank.local_rank == finished->local_rank) rank.ended = to_string(finished->status);
    }
  }
}

std::optional<Progress> read_page(const std::string& page_prefix, int local_rank) {
  if (page_prefix.empty()) return std::nullopt;
  return ProgressPage::read(page_prefix + std::to_string(local_rank));
}

std::optional<Progress> read_last_page(const std::string& page_prefix, int local_rank) {
  if (page_prefix.empty()) return std::nullopt;
  const std::string page = page_prefix + std::to_string(local_rank);
  if (auto running = ProgressPage::read(page)) return running;
  auto last = ProgressPage::read_last(page);
  // A free page says no more than that the rank is followed.
  return last && last->pid != 0 ? last : std::nullopt;
}

void read_progress(JobView& job, const std::string& page_prefix) {
  for (RankView& rank : job.ranks) {
    const auto page = read_page(page_prefix, rank.local_rank);
    if (page) rank.progress = view_of(*page, progress_now());
  }
}

JobView view_of(const LaunchPlan& plan, pid_t supervisor, pid_t agent) {
  std::error_code ignored;
  return {.id = job_id(plan.worker_command, supervisor),
          .pid = supervisor,
          .agent = agent,
          .run_id = plan.run_id,
          .max_restarts = plan.max_restarts,
          .world_size = plan.num_machines * plan.nproc_per_node,
          .workers = plan.nproc_per_node,
          .started = std::chrono::system_clock::now(),
          .command = plan.worker_command,
          .folder = std::filesystem::current_path(ignored)};
}

}  // namespace acc::launcher
