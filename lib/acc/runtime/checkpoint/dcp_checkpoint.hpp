// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc {

/// What one process has of a tensor: a range of its elements in row-major order.
struct TensorRange {
  /// The keys under which Python finds the tensor in nested dicts, as {"model", "layers.0.weight"}.
  std::vector<std::string> path = {};
  std::vector<std::int64_t> shape = {};  ///< Of the whole tensor.
  std::int64_t begin = 0;                ///< The first element.
  /// The elements from there on, contiguous, in any shape. They share the memory of what they are a part of.
  at::Tensor elements = {};
};

/// The range that is the whole of a tensor.
TensorRange whole_range(std::vector<std::string> path, const at::Tensor& tensor);

/// What one process saves of a sharded state.
struct ShardedState {
  /// The ranges of all processes together cover each tensor once: what several have is saved by one of them.
  std::vector<TensorRange> ranges = {};
  /// What is not a tensor, in nested dicts, as {"optimizer": {"param_groups": [...]}}. That of the main
  /// process is saved.
  PtDict objects = {};
};

/// Together: writes a checkpoint that Python's torch.distributed.checkpoint loads on any number of processes,
/// each its own ranges into a file of its own, and replaces `folder` atomically, as save_checkpoint does. The
/// folder must be one that all processes see. Throws on every process when one of them cannot write, or when
/// the ranges do not cover a tensor.
void save_sharded(const std::filesystem::path& folder, const ShardedState& state,
                  const SavingProcesses& processes);

/// Reads ranges of the tensors in such a checkpoint, written by any number of processes of acc or Python,
/// into their `elements`, and no others. Each process may call it alone. Throws Error{config} with every
/// tensor that is missing or of another shape, Error naming the file that is missing or damaged; the elements
/// are unchanged only in the first case.
void load_sharded(const std::filesystem::path& folder, const std::vector<TensorRange>& ranges);

/// The values in such a checkpoint that are not tensors, in nested dicts and lists.
PtDict read_sharded_objects(const std::filesystem::path& folder);

namespace detail {

/// Throws Error{usage} when the range is not within its tensor.
void require_inside(const TensorRange& range);

class FolderReplacement;

/// Together: writes the files of such a checkpoint into the new folder of `checkpoint`, or into a subfolder
/// of it, which is created if missing. When that fails, the new folder is removed.
void write_sharded_files(FolderReplacement& checkpoint, const std::filesystem::path& subfolder,
                         const ShardedState& state, const SavingProcesses& processes);

}  // namespace detail

}  // namespace acc
