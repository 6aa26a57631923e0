// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace torch::nn {
class Module;
}

namespace acc {

class ProcessGroup;

/// From now on every BatchNorm1d, 2d and 3d in `module` uses the mean and variance of all processes' batches
/// together while it trains, as Python's SyncBatchNorm; also on the CPU. The modules stay the same objects of
/// the same type, wherever the program holds them. It takes effect when the module is prepared for several
/// processes; with one, and in eval(), nothing changes. Copies made by clone() are plain again.
/// Each process needs more than one value per channel, or none.
/// Throws Error{usage} naming a batch norm that has neither weights nor running statistics: LibTorch calls
/// such a one in a way that does not tell it from others.
void convert_sync_batchnorm(torch::nn::Module& module);

/// The converted batch norms of `module` talk through `group` from now on.
void use_group_in_sync_batch_norms(const torch::nn::Module& module,
                                   const std::shared_ptr<ProcessGroup>& group);

}  // namespace acc
