// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "acc/formats/saved_states.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc::detail {

/// How the states are numbered that these processes save.
struct StateNumbering {
  std::int64_t next = 0;    ///< The first number that no machine has.
  std::string run_id = {};  ///< Tells them from those of other attempts.
};

/// Together. The run id is that of the main process.
StateNumbering agree_on_numbering(const SavedStates& states, const std::string& run_id,
                                  const SavingProcesses& processes);

/// Together: the newest state that all processes can load, in its folder on this machine; none: the training
/// has none. A snapshot counts if one machine has it whole, which gives it to those that lack it. `tell`
/// is called with a line for each that is damaged. Throws Error{system} when a process is lost.
std::optional<SavedState> newest_common_state(const SavedStates& states, const SavingProcesses& processes,
                                              const std::function<void(const std::string& line)>& tell);

}  // namespace acc::detail
