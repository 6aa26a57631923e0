// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/comm/cpu/machine_leader.hpp"
#include "acc/runtime/comm/cpu/memory_group.hpp"
#include "acc/runtime/comm/cpu/off_thread.hpp"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc::detail {

class Handover;

/// How the ranks of one machine do what they can in memory.
struct Machine {
  std::shared_ptr<MemoryGroup> memory = {};  ///< Null if the machine has one rank of several machines.
  bool has_all_ranks = false;
  std::unique_ptr<MachineLeader, OffThreadDelete<MachineLeader>> leader =
      {};  ///< On the first rank, if there are several machines.
};

/// The ranks of each machine, in their order, for the machine's number of each rank; the machines in the
/// order of their first ranks.
std::vector<std::vector<int>> ranks_of_machines(const std::vector<std::int64_t>& numbers);

/// Tells the others that this rank can share memory, and where. Before it connects through Gloo.
void announce(c10d::Store& store, int rank, const Handover& handover);

/// Whether all ranks have announced themselves: whether all are C++ programs. Once they are connected through
/// Gloo the answer is the same on all; Python's processes are not waited for.
bool all_announced(c10d::Store& store, int size);

/// Connects the first rank of each machine with those of the others: this one is `machine` of `machines`.
using ConnectLeaders = std::function<c10::intrusive_ptr<c10d::Backend>(int machine, int machines)>;

/// Finds the ranks of this machine, and shares memory with them. All ranks call it once they are connected
/// through `gloo` and all have announced themselves. Empty on all of them if it is not `enabled` on one, if
/// each has a machine of its own, or if memory cannot be shared somewhere.
std::optional<Machine> join_machine(c10d::Backend& gloo, c10d::Store& store, Handover& handover,
                                    std::chrono::milliseconds timeout, bool enabled,
                                    const ConnectLeaders& connect_leaders);

}  // namespace acc::detail
