// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "acc/launch/exit_status.hpp"

namespace acc {

/// The signals that the front hands on. SIGHUP is not among them under `nohup`.
std::vector<int> forwarded_signals();

/// How the agent ended.
struct GuardReport {
  ExitStatus agent = {};
  /// Something that it had started still lived, and was killed.
  bool left_something = false;
};

/// Runs `agent` in a child process that leads its own session, hands signals on to it, and waits: the calling
/// process is the front, the one that the user sees. Whichever of the two is killed, the other one ends
/// everything below: the front when the agent is gone, and the agent when its `front` descriptor becomes
/// readable. The agent begins with the forwarded signals blocked; what it returns is its exit code.
/// `in_session`: the agent stays in our session instead, in a process group of its own in the background, so
/// that it can hand the terminal on. Call it before there are threads, and while the process is small. Throws
/// Error{system}.
GuardReport guard(const std::function<int(int front)>& agent, bool in_session = false);

}  // namespace acc
