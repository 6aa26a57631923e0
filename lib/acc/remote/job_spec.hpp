// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {

/// All that the agent of a host needs for its part of the job. It travels on standard input, so that neither
/// the command nor a variable is seen in the process table.
struct JobSpec {
  /// Of the acc that sends it; the other has to be the same.
  std::string version = {};
  Dialect dialect = Dialect::launch;
  /// The launcher whose name acc has on the client, by whose Python scripts run; empty: none.
  std::string replaced = {};
  /// The words behind `acc launch` or `acc run`, as typed.
  std::vector<std::string> words = {};
  /// The current folder of the client.
  std::filesystem::path folder = {};
  /// The variables that are carried to the host.
  Environment environment = {};
  /// The config file of the client, which the host need not have.
  std::optional<ConfigText> config = {};
  /// This node's rank and slots; the address and port at which the nodes meet come with the StartOrder.
  HostAllocation host = {};
  /// How long the client may be silent.
  std::chrono::milliseconds silence = std::chrono::seconds(20);
};

/// A host answers that the job can start there.
struct HostReady {
  std::string host_name = {};
  /// Addresses at which others may reach it, the most promising first.
  std::vector<std::string> addresses = {};
  /// Where the client's connection came from; empty: it came without ssh.
  std::string client = {};
  /// A port that is free there, where the nodes can meet.
  std::uint16_t port = 0;
  /// How long its workers have to end.
  std::chrono::milliseconds grace = {};

  bool operator==(const HostReady&) const = default;
};

/// A host answers why the job cannot start there.
struct Refusal {
  ErrorKind kind = ErrorKind::usage;
  std::vector<Problem> problems = {};

  bool operator==(const Refusal&) const = default;
};

/// Where the nodes meet, and the name of the run.
struct StartOrder {
  std::string address = {};
  std::uint16_t port = 0;
  std::string run_id = {};

  bool operator==(const StartOrder&) const = default;
};

// As JSON, and back. parse_*() throw Error{system} for anything else.

std::string to_json(const JobSpec& spec);
JobSpec parse_job_spec(std::string_view text);
/// The version of the acc that sent a spec, which this one may not understand; empty: none.
std::string version_of_spec(std::string_view text);
std::string to_json(const HostReady& ready);
HostReady parse_host_ready(std::string_view text);
std::string to_json(const Refusal& refusal);
Refusal parse_refusal(std::string_view text);
std::string to_json(const StartOrder& order);
StartOrder parse_start_order(std::string_view text);
/// Of a job: 0 to 255. Throws Error{system} for anything else.
int parse_exit_code(std::string_view text);

/// The address at which the nodes meet: one of the first host at which another host saw it, where the job is
/// started from it; else the first that is neither loopback nor link-local, unless all hosts are one machine.
std::string meeting_address(const std::vector<HostReady>& hosts);

}  // namespace acc::launcher
