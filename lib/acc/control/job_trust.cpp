// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_trust.hpp"

#include <sys/stat.h>

#include <set>
#include <string>

namespace acc::launcher {

IsOfUser processes_of(uid_t user) {
  return [user](pid_t pid) {
    struct stat info = {};
    return pid > 0 && ::stat(("/proc/" + std::to_string(pid)).c_str(), &info) == 0 && info.st_uid == user;
  };
}

bool is_id_of(std::string_view id, pid_t pid) {
  const std::string number = "-" + std::to_string(pid);
  return id.ends_with(number) || id.substr(0, id.rfind('-')).ends_with(number);
}

bool has_id_of_process(const JobView& job, const IsOfUser& is_of_user) {
  return is_id_of(job.id, job.pid) && is_of_user(job.pid);
}

void forget_processes_of_others(JobView& job, const ProcessTable& processes, pid_t agent,
                                const IsOfUser& is_of_user) {
  std::set<pid_t> descendants;
  for (const ProcessStat* process : processes.tree(agent)) descendants.insert(process->pid);
  for (RankView& rank : job.ranks) {
    if (!descendants.contains(rank.pid) && !is_of_user(rank.pid)) rank.pid = 0;
  }
}

}  // namespace acc::launcher
