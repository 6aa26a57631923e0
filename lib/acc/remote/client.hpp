// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/remote/hosts.hpp"
#include "acc/remote/job_spec.hpp"
#include "acc/remote/ssh.hpp"

namespace acc::launcher {

/// A job that is started on several hosts.
struct RemoteJob {
  std::vector<JobHost> hosts = {};
  /// --hosts or --hostfile.
  std::string flag = {};
  /// The same for all hosts but for `host`.
  JobSpec spec = {};
  RemoteShell shell = {};
  /// Of ssh.
  Environment environment = {};
  std::string run_id = {};
  /// The program and its arguments, as `acc ps` shows them.
  std::vector<std::string> command = {};
  /// The job goes on when a host is lost (`--nnodes MIN:MAX` with c10d or etcd).
  bool survives_loss = false;
  /// How long a host may be silent. It bears the silence of the client for a third longer, so that the client
  /// knows first which host is lost.
  std::chrono::milliseconds silence = std::chrono::seconds(15);
  /// The time in which each host has to answer.
  std::chrono::milliseconds host_timeout = std::chrono::seconds(10);
  /// The output of each host comes as one piece, in the order of the hosts (`--dry_run`).
  bool in_order = false;
  /// Signals that hosts get although they would end the client, or it was started to ignore them.
  std::set<int> handled_signals = {};
};

/// Starts the agents of all hosts over ssh, at most 32 at a time, and the job when all are ready; passes on
/// what its workers write, in whole lines, and what acc says there, once. Signals go to all nodes. Returns
/// the exit code of the job: that of the host that failed first. Throws Error naming each host that cannot
/// start the job, after all others have answered and before anything is started.
int run_on_hosts(const RemoteJob& job);

}  // namespace acc::launcher
