// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <vector>

#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// What materialize does.
struct MaterializeOptions {
  at::Device device = at::kCPU;  ///< The device of tensors that get memory.
  /// If false, only buffers are materialized: for a model that will be sharded, whose parameters each process
  /// fills in part.
  bool parameters = true;
};

/// Gives the parameters and buffers of a module that are on the meta device (MetaDevice) memory, and fills
/// all of the module's with the weights at `path`, which read_weights reads. Of the weights no more than 64
/// MB are in memory at once. Throws Error{usage} with all weights that are missing, unknown or of another
/// shape; the module is then unchanged.
void materialize(torch::nn::Module& module, const std::filesystem::path& path,
                 const MaterializeOptions& options = {});

/// Reads ranges of the weights at `path`, which read_weights reads, into their `elements`, and no others:
/// what one process keeps of a sharded model. A range's `path` is the name of the weight. Of the weights no
/// more than 64 MB are in memory at once. Throws Error{config} with every weight that is missing or of
/// another shape; the elements are then unchanged.
void load_weight_ranges(const std::filesystem::path& path, const std::vector<TensorRange>& ranges);

}  // namespace acc
