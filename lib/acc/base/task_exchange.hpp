// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "acc/base/environment.hpp"

namespace acc {

/// What the first task of an MPI job tells the others.
struct FirstTask {
  /// The text that rank 0 gave.
  std::string text = {};
  /// The launcher's name of the job.
  std::string job = {};
  /// The number of nodes that have tasks, if the launcher tells.
  std::optional<int> num_nodes = {};
};

/// Gives every task of an MPI job the `text` of rank 0, which must hold no blank, through its launcher: PMI-1
/// on the connection PMI_FD (Hydra: MPICH, Intel MPI; Flux), or PMIx (Open MPI) with the library
/// libpmix.so.2. All tasks must call it, once. Empty: the launcher offers neither. Throws Error{rendezvous}
/// if the launcher ends the conversation, or some task does not come within a minute.
std::optional<FirstTask> exchange_first_task(const Environment& environment, int rank,
                                             const std::string& text);

/// The number of nodes that have tasks of an MPI job, which this task alone asks its launcher: PMI-1 on the
/// connection PMI_FD. Absent: it does not tell. To be called once, and not besides exchange_first_task().
std::optional<int> count_task_nodes(const Environment& environment);

}  // namespace acc
