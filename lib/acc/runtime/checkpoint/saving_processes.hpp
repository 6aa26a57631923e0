// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

namespace acc {

class ProcessGroup;

/// The processes that write a checkpoint together, from the view of one of them.
struct SavingProcesses {
  int index = 0;        ///< The rank of this process.
  int local_index = 0;  ///< Its rank on its machine.
  /// Null for one process.
  std::shared_ptr<ProcessGroup> group = {};

  bool is_main() const { return index == 0; }              ///< Whether it is rank 0.
  bool is_local_main() const { return local_index == 0; }  ///< Whether it is the first of its machine.
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
