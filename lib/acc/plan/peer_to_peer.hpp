// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {

/// NCCL_P2P_DISABLE and NCCL_IB_DISABLE for machines whose GPUs cannot reach each other: several of the RTX
/// 40 series under a driver older than 550.40.07, where NCCL hangs otherwise. What is set already stays.
Environment peer_to_peer_environment(const LaunchInputs& inputs);

}  // namespace acc::launcher
