// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

/// How the agents of the hosts are started.
struct RemoteShell {
  /// ACC_RSH in words, or ssh with acc's options; the host and the command follow.
  std::vector<std::string> words = {};
  /// This acc, which is tried on the hosts by its path first.
  std::filesystem::path acc = {};
  /// The names of this machine, which is reached without ssh.
  OwnNames names = {};
};

/// ssh asks for nothing, notices within `silence` that the other side is gone, and never becomes the master
/// of connections that outlive the job. ACC_RSH replaces it; what is called ssh there gets the options, too.
RemoteShell remote_shell(const Environment& environment, const std::filesystem::path& acc,
                         const OwnNames& names, std::chrono::milliseconds silence);

/// Whether the host is this machine by its plain name, or `localhost`: acc is then started here, without ssh.
bool is_this_machine(const std::string& host, const OwnNames& names);

/// The command that starts the agent of a host, for execve.
std::vector<std::string> agent_command(const RemoteShell& shell, const std::string& host);

/// Whether ssh says nothing but that the other side closed the connection at once, as a server does that has
/// enough logins going on (MaxStartups). What else it says would be the same the next time.
bool refuses_login_for_now(const std::string& errors);

/// Whether ssh says that it ended since the other side was silent.
bool ended_by_silence(const std::string& errors);

/// How a connection ended before the agent answered.
struct FailedConnection {
  std::string host = {};
  /// Absent: it was killed since the time was up.
  std::optional<ExitStatus> status = {};
  /// Its standard error, and what came on standard output in place of an answer.
  std::string errors = {};
  std::string output = {};
};

/// What a person has to know and do.
struct ConnectionProblem {
  ErrorKind kind = ErrorKind::rendezvous;
  Problem problem = {};
};

/// Says what is wrong by ssh's own words: an unknown name, a refused connection, a key
/// that is not accepted, a host that is silent, or acc missing there.
ConnectionProblem explain(const FailedConnection& failed, const RemoteShell& shell,
                          std::chrono::milliseconds limit);

}  // namespace acc::launcher
