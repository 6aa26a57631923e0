// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace torch::optim {
class LRScheduler;
}

namespace acc {

/// Throws Error{usage} when the optimizer of a LibTorch scheduler was moved away, as into
/// Accelerator::prepare: LibTorch's keep a reference that cannot be set anew.
void require_optimizer(const torch::optim::LRScheduler& scheduler);

/// What it takes for a LibTorch scheduler to go on, beside its optimizer's rates: a JSON object.
std::string state_of(const torch::optim::LRScheduler& scheduler);

/// Goes on where `state` was taken. Throws Error{config} for text that is no such state.
void load_state_of(torch::optim::LRScheduler& scheduler, std::string_view state);

}  // namespace acc
