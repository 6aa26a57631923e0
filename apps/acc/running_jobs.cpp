// SPDX-License-Identifier: Apache-2.0
#include "running_jobs.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/printable.hpp"
#include "acc/control/job_file.hpp"

namespace acc::launcher {

void add_job_option(CLI::App& command, std::string& job, const std::string& default_value) {
  const auto refuse_empty = [](const std::string& name) {
    return name.empty() ? std::string("is empty: leave it out, or give one that acc ps shows")
                        : std::string();
  };
  command
      .add_option("JOB", job,
                  "Its id, a unique prefix of it, or the pid of one of its processes (default: " +
                      default_value + ")")
      ->check(CLI::Validator(refuse_empty, ""));
}

FoundJobs running_jobs() {
  const auto folders = runtime_folders(Environment::of_process(), ::geteuid());
  remove_leftovers(folders);
  FoundJobs found = find_jobs(folders);
  for (const std::string& warning : found.warnings) log::write(log::Level::info, printable_line(warning));
  for (const std::string& id : found.silent)
    log::write(log::Level::info, "job " + printable_line(id) + " does not answer");
  return found;
}

namespace {

std::vector<JobView> views_of(const std::vector<RunningJob>& jobs) {
  std::vector<JobView> views;
  for (const RunningJob& job : jobs) views.push_back(job.view);
  return views;
}

}  // namespace

RunningJob running_job(const std::string& name, JobPart part) {
  FoundJobs found = running_jobs();
  return std::move(found.running.at(choose_job(views_of(found.running), found.silent, name, part)));
}

std::vector<JobUsage> usage_of(const std::vector<RunningJob>& jobs, const ProcessTable& before,
                               const ProcessTable& now, std::chrono::milliseconds interval) {
  std::vector<JobUsage> usage;
  if (jobs.empty()) return usage;
  const std::vector<GpuProcess> gpus = query_gpu_processes();
  CountedProcesses counted;
  for (const RunningJob& job : jobs) {
    JobUsage& of_job = usage.emplace_back(JobUsage{.job = job.view});
    counted.of_job.clear();
    for (const RankView& rank : job.view.ranks)
      of_job.ranks.push_back(rank_usage(rank, before, now, interval, gpus, counted));
  }
  return usage;
}

namespace {

// Longer than an agent waits for other nodes.
constexpr auto kAnswerTimeout = std::chrono::seconds(2);

OtherNodes read_answer(ControlClient& client, std::chrono::steady_clock::time_point deadline) {
  try {
    const auto answer = client.read_message(deadline);
    if (!answer) {
      client = ControlClient({});  // a late answer is not to be taken for that of the next request
      return {.reason = "the job does not answer in time"};
    }
    OtherNodes others = other_nodes_from_json(*answer);
    others.time = std::chrono::steady_clock::now();
    return others;
  } catch (const Error&) {
    return {.reason = "this machine's part of the job runs another version of acc"};
  }
}

}  // namespace

void ask_anew(std::vector<RunningJob>& jobs) {
  refresh(jobs);
  for (RunningJob& job : jobs) {
    if (job.view.has_other_nodes()) job.client.send({{"request", "nodes"}});
  }
}

void read_other_nodes(std::vector<RunningJob>& jobs, std::vector<JobUsage>& usage) {
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].view.has_other_nodes()) continue;
    JobUsage& job = usage.at(i);
    job.other_nodes = read_answer(jobs[i].client, deadline);
    if (job.job.hosts == 0 || job.other_nodes.world_size == 0) continue;
    job.job.world_size = job.other_nodes.world_size;
    job.job.attempt = job.other_nodes.attempt;
    job.job.max_restarts = job.other_nodes.max_restarts;
  }
}

std::vector<JobUsage> measure(std::vector<RunningJob>& jobs) {
  ask_anew(jobs);
  const ProcessSample sample = sample_processes();
  std::vector<JobUsage> usage = usage_of(jobs, sample.previous, sample.current, sample.interval);
  read_other_nodes(jobs, usage);
  return usage;
}

std::string reports_of_job(const std::vector<std::filesystem::path>& folders, pid_t job) {
  std::vector<RunningJob> jobs;
  if (auto match = find_job(folders, job)) jobs.push_back(std::move(*match));
  if (jobs.empty()) throw Error({.what = "no such job is running", .where = std::to_string(job)});
  JobUsage usage = measure(jobs).front();
  if (usage.other_nodes.host.empty()) usage.other_nodes.host = host_name();
  return to_json(reports_of(usage)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acc::launcher
