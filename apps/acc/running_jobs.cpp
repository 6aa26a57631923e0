// SPDX-License-Identifier: Apache-2.0
#include "running_jobs.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "acc/base/log.hpp"
#include "acc/control/job_file.hpp"

namespace acc::launcher {

FoundJobs running_jobs() {
  const auto folders = runtime_folders(Environment::of_process(), ::geteuid());
  remove_leftovers(folders);
  FoundJobs found = find_jobs(folders);
  for (const std::string& warning : found.warnings) log::write(log::Level::info, warning);
  for (const std::string& id : found.silent) log::write(log::Level::info, "job " + id + " does not answer");
  return found;
}

RunningJob running_job(const std::string& name) {
  FoundJobs found = running_jobs();
  std::vector<JobView> views;
  for (const RunningJob& job : found.running) views.push_back(job.view);
  return std::move(found.running.at(choose_job(views, found.silent, name)));
}

std::vector<JobUsage> usage_of(const std::vector<RunningJob>& jobs, const ProcessTable& before,
                               const ProcessTable& now, std::chrono::milliseconds interval) {
  std::vector<JobUsage> usage;
  if (jobs.empty()) return usage;
  const std::vector<GpuProcess> gpus = query_gpu_processes();
  for (const RunningJob& job : jobs) {
    JobUsage& of_job = usage.emplace_back(JobUsage{.job = job.view});
    for (const RankView& rank : job.view.ranks)
      of_job.ranks.push_back(rank_usage(rank, before, now, interval, gpus));
  }
  return usage;
}

}  // namespace acc::launcher
