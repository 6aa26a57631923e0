// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

// Boost.Process with std::filesystem: version 1.81 lacks these two includes.
#ifndef BOOST_PROCESS_USE_STD_FS
#define BOOST_PROCESS_USE_STD_FS
#endif
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>
// Must come after the includes above.
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/process.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc {

/// A child process. Destroying it kills the child, unless it has ended or was detached. Use
/// native_exit_code(): the number that async_wait() passes does not distinguish signals from exit codes.
using Process = boost::process::v2::basic_process<boost::asio::io_context::executor_type>;

/// The session and process group of a child.
enum class ProcessGrouping {
  session,     ///< the leader of a session of its own, without a terminal
  group,       ///< the leader of a process group of our session
  foreground,  ///< the same, and the terminal, which is its standard input, is its own
};

/// Lets this process open as many files as its hard limit allows, and returns the limits that it had.
rlimit raise_open_files();

/// The signals that this process handles or ignores.
std::vector<int> changed_signals();

/// A launcher for Boost.Process. It creates the child with clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD), so
/// the cost does not depend on the size of this process, and a failure between clone and exec is known
/// without a pipe. The child has the default signal dispositions but for `ignored_signals`, an empty signal
/// mask, and no descriptors but 0, 1 and 2; it gets `death_signal` when the thread that started it ends, and
/// this process and its descendants may attach a debugger to it.
class ProcessLauncher {
 public:
  Environment environment = {};
  /// The child's 0, 1 and 2; -1: inherited.
  int in = -1;
  int out = -1;
  int err = -1;
  ProcessGrouping grouping = ProcessGrouping::session;
  /// What changed_signals() returned, for who starts many children and changes none in between; absent: all.
  std::optional<std::vector<int>> signals_to_reset = {};
  /// Signals that the child ignores until it installs a handler.
  std::vector<int> ignored_signals = {};
  /// Absent: inherited. See raise_open_files().
  std::optional<rlimit> open_files = {};
  int death_signal = SIGKILL;
  /// Called in the child before exec, in the parent's memory: it must not allocate. If it returns false, with
  /// errno, the start fails.
  std::function<bool()> before_exec = {};

  /// `arguments` is the whole argv. Throws Error naming the program and the reason if it cannot be executed
  /// (usage: no such program, or not a program; system: anything else); then no process is left.
  Process operator()(const boost::asio::io_context::executor_type& executor,
                     const std::filesystem::path& program, std::vector<std::string> arguments) const;

  /// Starts a copy of this process (fork) in the place of a program. The child has all descriptors of ours,
  /// and `environment` as its own; it exits with what `run` returns, without exit handlers. Throws
  /// Error{system} when there is no room for another process.
  Process fork(const boost::asio::io_context::executor_type& executor, const std::function<int()>& run) const;
};

}  // namespace acc
