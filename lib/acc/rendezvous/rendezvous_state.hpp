// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace acc::launcher {

/// A node in torchrun's dynamic rendezvous. Ranks follow the sort order: addresses by code point.
struct RendezvousNode {
  std::string addr = {};
  std::int64_t pid = 0;
  std::int64_t local_id = 0;

  auto operator<=>(const RendezvousNode&) const = default;
};

/// `addr_pid_localid`, as torchrun prints it.
std::string to_string(const RendezvousNode& node);

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

/// What torchrun's agents share on the backend. The members have torchrun's names and meaning.
struct RendezvousState {
  std::int64_t round = 0;
  bool complete = false;
  std::optional<WallTime> deadline = {};
  bool closed = false;
  std::map<RendezvousNode, std::int64_t> participants = {};  ///< ranks; 0 until complete
  std::set<RendezvousNode> wait_list = {};
  std::set<RendezvousNode> redundancy_list = {};
  std::map<RendezvousNode, WallTime> last_heartbeats = {};
  /// Whether its times have a time zone: torch 2.6 and later write UTC, 2.4 and 2.5 none, and each crashes on
  /// the other's. Absent while there are no times.
  std::optional<bool> times_have_zone = {};

  bool operator==(const RendezvousState&) const = default;
};

/// As torchrun pickles it. An absent times_have_zone counts as true.
std::string to_pickle(const RendezvousState& state);

/// Reads a state pickled by torchrun of torch 2.4 to 2.15, and runs nothing in it. Throws Error{rendezvous}
/// for anything else: another class, a member too many or too few, times of both kinds, more than 2 MiB.
RendezvousState read_rendezvous_state(std::string_view pickle);

}  // namespace acc::launcher
