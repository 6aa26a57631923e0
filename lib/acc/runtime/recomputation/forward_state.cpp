// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/forward_state.hpp"

#include <ATen/autocast_mode.h>

#include <algorithm>

#include "acc/runtime/tensors/random.hpp"

namespace acc::detail {
namespace {

AutocastState autocast_state(c10::DeviceType device) {
  const bool is_half = at::autocast::get_autocast_dtype(device) == at::kHalf;
  return {.precision = is_half ? MixedPrecision::fp16 : MixedPrecision::bf16,
          .options = {.enabled = at::autocast::is_autocast_enabled(device),
                      .cache_enabled = at::autocast::is_autocast_cache_enabled()}};
}

std::vector<RandomState> random_states(const std::vector<at::Tensor>& inputs) {
  std::vector<RandomState> states = {{.device = at::kCPU, .state = random_state()}};
  for (const at::Tensor& input : inputs) {
    if (!input.is_cuda()) continue;
    const auto is_of_input = [&](const RandomState& one) { return one.device == input.device(); };
    if (std::ranges::none_of(states, is_of_input))
      states.push_back({.device = input.device(), .state = random_state(input.device())});
  }
  return states;
}

std::vector<RandomState> present(std::vector<RandomState> states) {
  for (RandomState& one : states) one.state = random_state(one.device);
  return states;
}

void restore(const std::vector<RandomState>& states) {
  for (const RandomState& one : states) set_random_state(one.state, one.device);
}

}  // namespace

ForwardState forward_state(const std::vector<at::Tensor>& inputs) {
  return {.random = random_states(inputs),
          .on_cpu = autocast_state(at::kCPU),
          .on_cuda = autocast_state(at::kCUDA)};
}

RestoredForwardState::RestoredForwardState(const ForwardState& state)
    : present_(present(state.random)),
      on_cpu_(state.on_cpu.precision, at::kCPU, state.on_cpu.options),
      on_cuda_(state.on_cuda.precision, at::kCUDA, state.on_cuda.options) {
  restore(state.random);
}

RestoredForwardState::~RestoredForwardState() {
  restore(present_);
}

}  // namespace acc::detail
