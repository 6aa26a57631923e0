// SPDX-License-Identifier: Apache-2.0
#include "running_jobs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "acc/control/runtime_folder.hpp"

namespace acc {

std::vector<RunningJob> running_jobs() {
  std::vector<std::string> warnings;
  auto jobs = find_jobs(runtime_folders(Environment::of_process(), ::geteuid()), warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "acc: {}\n", warning);
  return jobs;
}

RunningJob running_job(const std::string& name) {
  std::vector<RunningJob> jobs = running_jobs();
  std::vector<JobView> views;
  for (const RunningJob& job : jobs) views.push_back(job.view);
  return std::move(jobs.at(choose_job(views, name)));
}

}  // namespace acc
