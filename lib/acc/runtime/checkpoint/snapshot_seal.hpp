// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "acc/formats/saved_states.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc::detail {

/// What every process does with the folder of a snapshot, one step after the other, when its files are
/// written. Each machine gets the same: the main process's files, the files that each process has of its own,
/// the record, and checksums.
std::vector<std::function<void(const std::filesystem::path& folder)>> seal_of(
    const SnapshotRecord& record, const SavingProcesses& processes);

}  // namespace acc::detail
