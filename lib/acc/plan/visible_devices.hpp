// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace acc::launcher {

/// What a variable like CUDA_VISIBLE_DEVICES must say so that workers see `ids` (accelerate's gpu_ids):
/// numbers count within the list that acc inherited, if there is one; names (UUIDs, MIG) stay as they are.
/// Throws Error{usage}, in the words of `origin`, for a number that the list does not have.
std::string select_devices(const std::string& ids, const std::string& mask_name,
                           const std::optional<std::string>& inherited, const std::string& origin);

/// The device of each of `workers`, the first ones of `mask`. Without a mask the numbers themselves, of which
/// `gpus` exist (absent: nobody counts). Throws Error{usage} where there are fewer devices than workers.
std::vector<std::string> device_of_each_worker(const std::optional<std::string>& mask,
                                               std::optional<std::size_t> gpus, int workers,
                                               const std::string& origin);

}  // namespace acc::launcher
