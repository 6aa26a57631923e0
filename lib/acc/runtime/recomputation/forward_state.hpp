// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "acc/runtime/precision/autocast.hpp"

namespace acc::detail {

/// The state of a device's default generator.
struct RandomState {
  at::Device device = at::kCPU;
  at::Tensor state = {};
};

/// This thread's autocast on a kind of device.
struct AutocastState {
  MixedPrecision precision = MixedPrecision::bf16;
  AutocastOptions options = {};
};

/// What a forward depends on besides its inputs, parameters and buffers.
struct ForwardState {
  std::vector<RandomState> random = {};
  AutocastState on_cpu = {};
  AutocastState on_cuda = {};
};

/// That of this moment and thread: the generators of the CPU and of the devices of `inputs`.
ForwardState forward_state(const std::vector<at::Tensor>& inputs);

/// While it exists, this thread has the state of a former forward.
class RestoredForwardState {
 public:
  explicit RestoredForwardState(const ForwardState& state);
  ~RestoredForwardState();
  RestoredForwardState(const RestoredForwardState&) = delete;
  RestoredForwardState& operator=(const RestoredForwardState&) = delete;

 private:
  std::vector<RandomState> present_;
  Autocast on_cpu_;
  Autocast on_cuda_;
};

}  // namespace acc::detail
