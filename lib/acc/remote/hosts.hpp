// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// A host on which a part of the job runs. Its index in the list is the rank of the node.
struct JobHost {
  /// As ssh takes it: a name, an address or an alias of its configuration, perhaps with `user@` in front.
  std::string name = {};
  /// The number of workers; absent: as many as acc starts there by itself, one per device.
  std::optional<int> slots = {};
  /// `--hosts`, or `file:line`.
  std::string origin = {};

  bool operator==(const JobHost&) const = default;
};

/// Parses `a,b:4,user@c`; ranges as Slurm writes them (`n[01-16]:8`) are expanded. Throws Error{usage} naming
/// `where` for anything else, and for a host that is named twice.
std::vector<JobHost> parse_hosts(std::string_view list, std::string_view where);

/// Parses a host file: a line for each host, as DeepSpeed and Open MPI write it (`host slots=4`), as MPICH
/// and Intel MPI do (`host:4`), or the name alone; `#` begins a comment. Open MPI's `max_slots` must not be
/// below `slots` and has no other effect, since acc starts no more workers than slots. Throws all errors of
/// the file as an Error{usage}, each with `file:line`.
std::vector<JobHost> parse_hostfile(std::string_view text, const std::string& file);

/// The hosts of --hosts or --hostfile; empty: neither was given. Throws Error{usage} if both were, and as the
/// functions above; Error{system} if the file cannot be read.
std::vector<JobHost> hosts_of(const Settings& settings);

/// The workers of all hosts; absent: some host does not say how many it has. Throws Error{usage} naming
/// `flag` for more than an int holds.
std::optional<int> total_slots(const std::vector<JobHost>& hosts, const std::string& flag);

/// What the `inputs` of the node of this rank get: its rank and its slots. `flag`: --hosts or --hostfile;
/// `all_slots`: total_slots() of the hosts. The address and the port at which the nodes meet are to be filled
/// in.
HostAllocation allocation_of_host(const std::vector<JobHost>& hosts, int rank, const std::string& flag,
                                  std::optional<int> all_slots);

/// The flag that gave the hosts.
std::string hosts_flag(const Settings& settings);

/// Throws Error{usage} if something else than --hosts says, too, what starts acc on each node: an engine that
/// started several copies of this process, --srun or --standalone; or if a flag needs a terminal.
void check_hosts(const LaunchInputs& inputs, const Settings& settings, const std::vector<JobHost>& hosts);

}  // namespace acc::launcher
