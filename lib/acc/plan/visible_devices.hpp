// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/machine.hpp"
#include "acc/config/setting_types.hpp"

namespace acc::launcher {

/// The variable that masks the devices of this kind of training: CUDA_VISIBLE_DEVICES and its like.
std::string_view device_mask_name(DistributedType type);

/// Whether accelerate's gpu_ids select some devices: neither empty nor `all`.
bool selects_devices(std::string_view ids);

/// The number of devices that gpu_ids list for this kind of training. Throws Error{usage} with `origin` for a
/// list of which CUDA would show a part only: with an entry that is not a GPU, or is there twice.
int count_devices(const std::string& ids, DistributedType type, const std::string& origin);

/// The value of a mask such as CUDA_VISIBLE_DEVICES that shows `ids` (accelerate's gpu_ids) to workers.
/// Numbers are indices into the inherited mask, if there is one; names (UUIDs, MIG) are kept. Throws
/// Error{usage} with `origin` for an index beyond the mask.
std::string select_devices(const std::string& ids, const std::string& mask_name,
                           const std::optional<std::string>& inherited, const std::string& origin);

/// Throws Error{usage} with `origin` for a CUDA_VISIBLE_DEVICES of which CUDA would show a part only, and
/// workers would train on fewer GPUs or on the CPU. Without known GPUs nothing is checked.
void require_gpus(const std::string& mask, const Machine& machine, const std::string& origin);

/// The GPUs of a machine that is not here, for a plan of a job on it: those that gpu_ids name by UUID are
/// among them.
std::vector<Gpu> imagined_gpus(std::size_t count, const std::string& ids);

/// The device of each worker: the first ones of `mask`, the value of `mask_name`, else the numbers from 0.
/// With `gpus`, the number of GPUs of this machine, the mask is read as CUDA does; without, its fields are
/// handed out as by torchrun. Throws Error{usage} if there are fewer devices than workers.
std::vector<std::string> device_of_each_worker(const std::optional<std::string>& mask,
                                               std::string_view mask_name, std::optional<std::size_t> gpus,
                                               int workers, const std::string& origin);

}  // namespace acc::launcher
