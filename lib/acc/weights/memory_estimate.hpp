// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// The size of a model in float32, in bytes, as accelerate counts them.
struct ModelSize {
  /// Without the head of a task.
  std::int64_t total = 0;
  std::int64_t largest_layer = 0;
  /// Bytes of that head; 0 if there is none.
  std::int64_t head = 0;

  bool operator==(const ModelSize&) const = default;
};

/// Adds up the tensors of a checkpoint. `config` is the model's config.json (or null), which tells the
/// buffers that the library creates and no file holds. Layers are leaf modules and repeated blocks
/// (`layers.3`).
ModelSize model_size(const std::vector<TensorInfo>& tensors, const nlohmann::json& config);

/// Memory of a process that trains with Adam, in bytes: what it holds from step to step, without activations.
struct TrainingMemory {
  std::string sharding = {};
  double float32 = 0;
  /// 16-bit parameters and gradients, optimizer states and a copy of the parameters in float32.
  double mixed = 0;

  bool operator==(const TrainingMemory&) const = default;
};

/// For each way to shard a model of `parameters` elements over `processes`: nothing, ZeRO 1, 2 and 3 (the
/// last two are FSDP's SHARD_GRAD_OP and FULL_SHARD). Buffers count as parameters. As in "ZeRO: Memory
/// Optimizations Toward Training Trillion Parameter Models" (arXiv:1910.02054), section 3.1 and figure 1:
/// each stage divides one more of optimizer states, gradients and parameters by the number of processes.
std::vector<TrainingMemory> training_memory(std::int64_t parameters, int processes);

/// Parameters that FULL_SHARD has gathered at once, at most, in bytes of float32: those outside of repeated
/// blocks (`layers.3`), and two blocks, the one that computes and the next. Without blocks, all.
std::int64_t gathered_at_once(const std::vector<TensorInfo>& tensors);

/// `417.65 MB`, `1.0 KB`, `1023 bytes`: divided by 1024 and rounded to two decimals, as in Python.
std::string size_text(double bytes);

/// A table in a frame, as accelerate draws it: all texts centred, the title over all columns. Ends with a
/// newline.
std::string framed_table(const std::string& title, const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows);

/// accelerate's table for the model, a row for each of `dtypes` (float32, float16, int8, int4).
std::string estimate_table(const std::string& model, const ModelSize& size,
                           const std::vector<std::string>& dtypes);

}  // namespace acc::launcher
