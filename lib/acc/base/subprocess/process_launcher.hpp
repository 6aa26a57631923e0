// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

// std::filesystem in the place of Boost's; Boost.Process of 1.81 forgets to include these two then.
#ifndef BOOST_PROCESS_USE_STD_FS
#define BOOST_PROCESS_USE_STD_FS
#endif
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>
// Before this line: what Boost.Process needs.
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/process.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc {

/// A child process. Destroying it kills the child, unless it has ended or was detached. Of its exit codes
/// native_exit_code() alone tells signals from codes: the number that async_wait() hands over mixes them.
using Process = boost::process::v2::basic_process<boost::asio::io_context::executor_type>;

/// Where a child stands among the others of its terminal.
enum class ProcessPlace {
  session,     ///< the leader of a session of its own, without a terminal
  group,       ///< the leader of a process group of our session
  foreground,  ///< the same, and the terminal, which is its standard input, is its own
};

/// A launcher for Boost.Process, in the place of its default one. The child is made by clone(CLONE_VM |
/// CLONE_VFORK | CLONE_PIDFD): a start costs the same however large this process is, and a failure between
/// clone and exec is known here without a pipe. The child has the default signal dispositions, an empty
/// signal mask, and no descriptor but 0, 1 and 2; it is killed when the thread that started it ends, and this
/// process and those below it may attach a debugger to it.
class ProcessLauncher {
 public:
  Environment environment = {};
  /// The child's 0, 1 and 2; -1: ours.
  int in = -1;
  int out = -1;
  int err = -1;
  ProcessPlace place = ProcessPlace::session;
  /// Absent: ours.
  std::optional<rlimit> open_files = {};
  /// Called in the child before exec, in our memory: it must not allocate. False, with errno, ends the start.
  std::function<bool()> before_exec = {};

  /// `arguments` is the whole argv. Throws Error naming the program and the reason when it cannot be executed
  /// (usage: there is no such program, or it is none; system: anything else); nothing of it is left then.
  Process operator()(const boost::asio::io_context::executor_type& executor,
                     const std::filesystem::path& program, std::vector<std::string> arguments) const;
};

}  // namespace acc
