// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {

/// Whether a process runs for the user of a job. What a job says of itself may be false, and root, who looks
/// at the jobs of all users, takes no process of one for that of another.
using IsOfUser = std::function<bool(pid_t)>;

/// By the owner of /proc/PID, which for a program that may not be read is root.
IsOfUser processes_of(uid_t user);

/// Whether a job whose first process this is may have the id: it ends with the pid, and maybe the number that
/// JobFile adds.
bool is_id_of(std::string_view id, pid_t pid);

/// Whether the id is that of a process of the user: of two jobs with one id, which job is the true one.
bool has_id_of_process(const JobView& job, const IsOfUser& is_of_user);

/// Sets the pids of ranks to 0 that are neither processes of the user nor below the agent.
void forget_processes_of_others(JobView& job, const ProcessTable& processes, pid_t agent,
                                const IsOfUser& is_of_user);

}  // namespace acc::launcher
