// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/remote/hosts.hpp"
#include "acc/remote/job_spec.hpp"
#include "acc/remote/ssh.hpp"

namespace acc::launcher {

/// A job that is started on several hosts.
struct RemoteJob {
  std::vector<Host> hosts = {};
  /// --hosts or --hostfile.
  std::string flag = {};
  /// The same for all hosts but for `host`.
  JobSpec spec = {};
  RemoteShell shell = {};
  /// Of ssh.
  Environment environment = {};
  std::string run_id = {};
  /// The job goes on when a host is lost (`--nnodes MIN:MAX`).
  bool survives_loss = false;
  /// The time in which each host has to answer.
  std::chrono::milliseconds host_timeout = std::chrono::seconds(10);
  /// The output of each host comes as one piece, in the order of the hosts (`--dry_run`).
  bool in_order = false;
  /// How long the other hosts have to end when one has failed.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
};

/// Starts the agents of all hosts over ssh, at most 32 at a time, and the job when all are ready; passes on
/// what its workers write, in whole lines, and what acc says there, once. Signals go to all nodes. Returns
/// the exit code of the job: that of the host that failed first. Throws Error naming each host that cannot
/// start the job, after all others have answered and before anything is started.
int run_on_hosts(const RemoteJob& job);

/// How the part of a host ended.
struct HostEnd {
  /// Absent: the connection was lost before.
  std::optional<int> code = {};
};

/// The exit code of a job whose parts ended like this, in the order of their ends. A job that survives the
/// loss of a host is well if the parts that were not lost are.
int code_of_job(const std::vector<HostEnd>& ends, bool survives_loss);

/// Why a host cannot start the job.
struct HostProblem {
  std::string host = {};
  Problem problem = {};
};

/// The problems, each with the hosts that have it: `a, b: train.py: no such file`.
std::vector<Problem> merge_problems(const std::vector<HostProblem>& problems);

/// Lines of acc on a host, for a person: `acc: text` becomes `acc: host: text`.
std::string with_host(std::string_view lines, const std::string& host);

/// What several hosts say alike is said once. Remembers the last texts.
class SaidOnce {
 public:
  /// Whether this is not what another host has said already.
  bool is_new(const std::string& text, int host);

 private:
  static constexpr std::size_t kRemembered = 256;
  std::map<std::string, int> first_host_ = {};
  std::deque<std::string> order_ = {};
};

}  // namespace acc::launcher
