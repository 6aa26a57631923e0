// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace acc {

/// How this machine is known.
struct OwnNames {
  std::string host_name = {};
  /// Of its network interfaces, in numbers, loopback included.
  std::vector<std::string> addresses = {};
};

/// Asks the kernel. No name is looked up.
OwnNames own_names();

/// Those of its addresses that others can see it at: all but loopback.
std::vector<std::string> addresses_for_others(const OwnNames& own);

/// Whether `host`, a name or an address that resolves to `resolved`, is this machine. A forward look-up
/// decides, never a reverse one: what a machine is called back is somebody else's habit.
bool names_this_machine(const std::string& host, const std::vector<std::string>& resolved,
                        const OwnNames& own);

/// What a host name stands for.
struct HostLookup {
  /// In numbers; empty: it stands for nothing, and `error` says why.
  std::vector<std::string> addresses = {};
  std::string error = {};
};

/// Asks the system's resolver and waits for its answer. An address in numbers stands for itself.
HostLookup look_up(const std::string& host);

/// Those of `addresses` that are this machine's, each once. `0.0.0.0` and `::` become loopback: that is where
/// a connection to them goes.
std::vector<std::string> own_among(const std::vector<std::string>& addresses, const OwnNames& own);

/// Where a store listens that others reach as `host`: on the addresses of this machine that the name stands
/// for; on all when it stands for none of them (an address that is translated on the way) or only for
/// loopback although it is a name (as Debian's /etc/hosts has it).
std::vector<std::string> addresses_to_listen_on(const std::string& host,
                                                const std::vector<std::string>& resolved,
                                                const OwnNames& own);

}  // namespace acc
