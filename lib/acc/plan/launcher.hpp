// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/config/setting_types.hpp"

namespace acc::launcher {

/// accelerate's launcher for a kind of job, or torchrun under its rules.
enum class Launcher { simple, elastic, deepspeed, tpu, tpu_pod, sagemaker, torchrun };

template <>
inline constexpr Words kEnumWords<Launcher> = "simple elastic deepspeed tpu tpu-pod sagemaker torchrun";

}  // namespace acc::launcher
