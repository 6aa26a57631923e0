// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/save_options.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc {

/// Together: writes a checkpoint that accelerate's load_state can read, and replaces `folder` atomically: if
/// a process is killed at any moment, `folder` is either unchanged or the complete new checkpoint. Files in
/// it that are not part of a checkpoint are kept. Throws on every process when one of them cannot write.
void save_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content,
                     const SavingProcesses& processes, const SaveCheckpointOptions& options = {});

/// Loads a checkpoint of acc or of accelerate into the same objects, and returns the step of the
/// accumulation. What is loaded is of one save, also beside a process that saves to the folder. Models and
/// optimizers may be in files or in shards, whatever they are here: of shards, each process reads the parts
/// that it keeps. A process without random states in the checkpoint keeps its current ones; gradients of an
/// unfinished accumulation are distributed so that their mean over the processes stays the same. Throws Error
/// naming the file that is missing or damaged, or with all weights that do not fit; models and optimizers are
/// then unchanged. With a loading_group it is for all of its processes together, and throws on all of them.
std::optional<std::int64_t> load_checkpoint(const std::filesystem::path& folder,
                                            const CheckpointContent& content, int process,
                                            const std::vector<LoadStatePreHook>& hooks = {});

}  // namespace acc
