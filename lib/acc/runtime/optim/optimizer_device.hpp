// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

namespace torch::optim {
class Optimizer;
}

namespace acc {

/// Moves what LibTorch's optimizers keep for each parameter, such as momentum, to `device`. Other kinds of
/// optimizers keep theirs where it is.
void move_optimizer_state(torch::optim::Optimizer& optimizer, c10::Device device);

}  // namespace acc
