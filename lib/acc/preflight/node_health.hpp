// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/nvml.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/preflight/kernel_log.hpp"

namespace acc::launcher {

/// A host name and what the node's resolver says of it.
struct ResolvedName {
  std::string name = {};
  HostLookup lookup = {};
};

/// What a node finds out about itself.
struct NodeHealth {
  /// Its rank among the nodes of the round.
  int rank = 0;
  std::string host = {};
  /// Workers that it is to start.
  int workers = 0;

  /// The devices that its workers see, and the version of the driver; empty: no driver.
  std::vector<GpuHealth> gpus = {};
  std::string driver = {};
  /// Absent: the kernel log is not readable for this user.
  std::optional<std::vector<Xid>> xids = {};

  std::uint64_t memory_bytes = 0;
  std::uint64_t free_memory_bytes = 0;
  /// Where the log files go; `disk_error` says why it cannot be written.
  std::string log_folder = {};
  std::optional<std::uint64_t> free_disk_bytes = {};  ///< Absent: the disk did not answer.
  std::string disk_error = {};

  /// The address at which the nodes meet.
  ResolvedName meeting = {};
  /// The node's own name, at which Gloo listens. Absent: Gloo is told an interface, or there is one node.
  std::optional<ResolvedName> own_name = {};
  /// The address from which the node reaches the meeting address.
  std::string address = {};
  /// Where it answers the probes of other nodes.
  std::uint16_t port = 0;

  /// What did not answer in time, such as `the NVIDIA driver`.
  std::vector<std::string> unanswered = {};
};

/// An attempt of a node to open a connection to another one.
struct ConnectionCheck {
  int from = 0;
  int to = 0;
  /// Why there is none; empty: there was.
  std::string error = {};
  /// How far the clock of `to` is ahead of that of `from`, exact to half of the round trip.
  double clock_offset = 0;
  double round_trip = 0;

  bool operator==(const ConnectionCheck&) const = default;
};

/// A measurement of what one node can send to another while neither measures with a third.
struct Transfer {
  int from = 0;
  int to = 0;
  /// Absent: it was not measured, because of `error`.
  std::optional<double> bytes_per_second = {};
  std::string error = {};

  bool operator==(const Transfer&) const = default;
};

/// What all nodes have found out together.
struct Observations {
  /// Nodes of the round, and what those report that answered, in the order of their ranks.
  int num_nodes = 1;
  std::vector<NodeHealth> nodes = {};
  /// The ranks of those among them that did not report what they measured.
  std::vector<int> silent = {};
  /// Of more than 64 nodes only those that failed, and one of each node.
  std::vector<ConnectionCheck> connections = {};
  std::vector<Transfer> transfers = {};
  double seconds = 0;
};

/// Text for the store of the job, and back. The readers throw std::exception for anything else.
std::string encode(const NodeHealth& node);
std::string encode(const std::vector<ConnectionCheck>& connections);
std::string encode(const std::vector<Transfer>& transfers);
NodeHealth decode_health(std::string_view text);
std::vector<ConnectionCheck> decode_connections(std::string_view text);
std::vector<Transfer> decode_transfers(std::string_view text);

}  // namespace acc::launcher
