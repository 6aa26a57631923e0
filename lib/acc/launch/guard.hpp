// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <vector>

#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

/// The signals that the supervisor forwards to the agent, and the `additional` ones. SIGHUP and SIGTSTP are
/// left out when they are ignored, as under nohup; SIGUSR1 and SIGUSR2 too, unless they are additional.
std::vector<int> forwarded_signals(const std::set<int>& additional = {});

/// The processes of acc that receive signals. Engines, systemd and pkill send one to all of them, and each
/// passes its own on, so that it arrives at the agent up to three times, in any order and on a loaded machine
/// at any time.
enum class Receiver { agent, guardian, supervisor };

/// A signal that the same process of acc receives again within this time counts once: timeout(1) sends two.
constexpr auto kRepeatedSignal = std::chrono::milliseconds(100);

/// Which process of acc received a signal that has arrived here, by the siginfo_t (or signalfd_siginfo) of
/// its arrival: `self`, unless guard() has passed it on from another one.
Receiver receiver_of(int code, int value, Receiver self);

/// How the agent ended.
struct GuardReport {
  ExitStatus agent = {};
  /// Descendants of the agent were still running and were killed.
  bool left_something = false;
};

struct GuardOptions {
  /// Guardian and agent stay in our session, as background process groups, so that the agent can give the
  /// terminal to a worker.
  bool in_session = false;
  /// The agent is the init process of a new pid namespace: then the kernel kills all descendants even when
  /// all three are killed at once.
  bool pid_namespace = false;
  /// Signals to forward besides those of forwarded_signals().
  std::set<int> additional_signals = {};
};

/// Runs `agent` in a grandchild, with two processes above it: the supervisor, which is the calling process,
/// and its child, the guardian, which only waits. Whichever two of the three are killed, even at once, the
/// third kills all descendants: supervisor and guardian are subreapers, and the agent's `supervisor`
/// descriptor becomes readable when either has ended. The supervisor forwards signals to the agent and stops
/// itself on SIGTSTP, as any job of a shell. `clean_up` is called once, in the supervisor or the guardian,
/// when the agent was killed, after all its descendants have ended. The agent begins in a session of its own
/// with the forwarded signals blocked; its result is its exit code. To be called before there are threads,
/// while the process is small. Throws Error{system}.
GuardReport guard(const std::function<int(int supervisor)>& agent, const std::function<void()>& clean_up,
                  const GuardOptions& options = {});

}  // namespace acc::launcher
