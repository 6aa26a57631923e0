// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "acc/launch/exit_status.hpp"

namespace acc {

/// The signals that the front hands on: those of every job, and `also`. SIGHUP is not among them under
/// `nohup`.
std::vector<int> forwarded_signals(const std::set<int>& also = {});

/// How the agent ended.
struct GuardReport {
  ExitStatus agent = {};
  /// Something that it had started still lived, and was killed.
  bool left_something = false;
};

/// Runs `agent` in a child process that leads its own session, hands signals on to it, and waits: the calling
/// process is the front, the one that the user sees. Whichever of the two is killed, the other one ends
/// everything below: the front when the agent is gone, and the agent when its `front` descriptor becomes
/// readable. The agent begins with the forwarded signals (and `also`) blocked; what it returns is its exit
/// code. Call it before there are threads, and while the process is small. Throws Error{system}.
GuardReport guard(const std::function<int(int front)>& agent, const std::set<int>& also = {});

}  // namespace acc
