// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/control/control_client.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {

/// The option JOB of a command, without which it takes `default_value`. An empty one, as of a shell variable
/// that is not set, is refused.
void add_job_option(CLI::App& command, std::string& job, const std::string& default_value);

/// The running jobs of this user. Reports jobs that do not answer, and folders that cannot be used, on
/// standard error.
FoundJobs running_jobs();

/// Finds a job by id, by a prefix of it, or by a process of it. Throws Error{usage}.
RunningJob running_job(const std::string& name, JobPart part = JobPart::whole);

/// The jobs with the resource use of their ranks in `now`; CPU use is since `before`, `interval` ago.
std::vector<JobUsage> usage_of(const std::vector<RunningJob>& jobs, const ProcessTable& before,
                               const ProcessTable& now, std::chrono::milliseconds interval);

/// Reads the jobs anew, since running_jobs() may have waited for one that does not answer, and asks those of
/// several nodes for the other nodes; read_other_nodes() has to follow.
void ask_anew(std::vector<RunningJob>& jobs);

/// Adds what they answer, which takes a second at most if nodes are lost: the other nodes and, to the client
/// of
/// `--hosts`, what is known of its job. A job that does not answer says so.
void read_other_nodes(std::vector<RunningJob>& jobs, std::vector<JobUsage>& usage);

/// The jobs with the resource use of all their ranks, which takes 200 ms, and longer for other nodes.
std::vector<JobUsage> measure(std::vector<RunningJob>& jobs);

/// to_json(NodeReports) of all nodes of the job of this process, for a viewer on another machine. Throws
/// Error{usage} if there is none below `folders`.
std::string reports_of_job(const std::vector<std::filesystem::path>& folders, pid_t job);

}  // namespace acc::launcher
