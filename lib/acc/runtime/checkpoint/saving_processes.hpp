// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "acc/formats/checksums.hpp"

namespace acc {

class ProcessGroup;

/// The processes that write a checkpoint together, from the view of one of them.
struct SavingProcesses {
  int index = 0;        ///< The rank of this process.
  int local_index = 0;  ///< Its rank on its machine.
  int num_local = 1;    ///< The number of processes on its machine.
  /// Null for one process.
  std::shared_ptr<ProcessGroup> group = {};

  bool is_main() const { return index == 0; }              ///< Whether it is rank 0.
  bool is_local_main() const { return local_index == 0; }  ///< Whether it is the first of its machine.
  /// The rank of the first process of its machine, by which machines are known.
  int machine() const { return index - local_index; }
  /// Whether this process writes the shared files: the first, or the first of each machine.
  bool writes_shared(bool on_each_node) const { return is_main() || (on_each_node && is_local_main()); }
};

namespace detail {

class FolderReplacement;

/// Calls `function` and returns when it is done on every process. When it throws on any, `clean_up` is called
/// on all, and this throws when that is done on all: its own error on a process that failed, on the others
/// Error{system} with the text and rank of the first. A program that ends by the error ends its job, and with
/// it processes that still clean up. When a process is lost, nobody waits.
void together(
    const SavingProcesses& processes, const std::function<void()>& function,
    const std::function<void()>& clean_up = [] {});

/// This process among those of its machine.
inline FileShare share_on_machine(const SavingProcesses& processes) {
  return {.index = static_cast<std::size_t>(processes.local_index),
          .count = static_cast<std::size_t>(processes.num_local)};
}

/// Together: the machine of each process.
std::vector<int> machines_of(const SavingProcesses& processes);

/// Together: the number that the main process has.
int number_of_main(int number, const SavingProcesses& processes);

/// A function, for all processes together, that returns whether its argument is true on any of them.
std::function<bool(bool)> on_any(const SavingProcesses& processes);

/// Together: creates the new folder.
void begin_together(FolderReplacement& folder, const SavingProcesses& processes);

/// Together: calls `function` on every process. When it throws on any, the new folder is removed.
void fill_together(FolderReplacement& folder, const SavingProcesses& processes,
                   const std::function<void()>& function);

/// Together: replaces the old folder with the new one. When that fails, the new folder is removed.
void publish_together(FolderReplacement& folder, const SavingProcesses& processes);

}  // namespace detail

}  // namespace acc
