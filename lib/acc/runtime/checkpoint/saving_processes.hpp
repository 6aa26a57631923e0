// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace acc {

class ProcessGroup;

/// The processes that write a checkpoint together, as one of them sees them.
struct SavingProcesses {
  int index = 0;
  int local_index = 0;
  /// Null for one process.
  std::shared_ptr<ProcessGroup> group = {};

  bool is_main() const { return index == 0; }
  bool is_local_main() const { return local_index == 0; }
  /// Whether this one writes what all have in common: the first, or the first of each machine.
  bool writes_shared(bool on_each_node) const { return is_main() || (on_each_node && is_local_main()); }
};

/// Calls `act` and returns when it is done on every process. When it throws on any, this throws on all: its
/// own error on a process that failed, on the others Error{system} with the first one's words and number.
void together(const SavingProcesses& processes, const std::function<void()>& act);

}  // namespace acc
