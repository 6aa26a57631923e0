// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

/// The signals that the front hands on: those of every job, and `also`. SIGHUP is not among them under
/// `nohup`, nor SIGTSTP where it is ignored.
std::vector<int> forwarded_signals(const std::set<int>& also = {});

/// How the agent ended.
struct GuardReport {
  ExitStatus agent = {};
  /// Something that it had started still lived, and was killed.
  bool left_something = false;
};

struct GuardOptions {
  /// Keeper and agent stay in our session, in process groups of their own in the background, so that the
  /// agent can hand the terminal on.
  bool in_session = false;
  /// The agent is the first process of a pid namespace: then nothing lives on even when all three are killed
  /// at once.
  bool pid_namespace = false;
  /// Signals to hand on besides forwarded_signals().
  std::set<int> also = {};
};

/// Runs `agent` below two processes that stand guard: the calling one, the front, which the user sees, and
/// between the two the keeper, which does nothing but wait. Signals to the front are handed on to the agent;
/// on SIGTSTP the front stops as well, as any job of a shell. Whichever two of the three are killed, even at
/// once, the third ends everything below: front and keeper adopt what the agent leaves, and the agent's
/// `front` descriptor becomes readable when either is gone. `clean_up` is called once where the agent could
/// not return, after everything is gone, in the front or the keeper. The agent begins with the forwarded
/// signals blocked, in a session of its own; what it returns is its exit code. Call it before there are
/// threads, and while the process is small. Throws Error{system}.
GuardReport guard(const std::function<int(int front)>& agent, const std::function<void()>& clean_up,
                  const GuardOptions& options = {});

}  // namespace acc::launcher
