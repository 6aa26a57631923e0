// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <memory>

#include "acc/runtime/accelerator/accelerator.hpp"

namespace acc::test {

/// Whether the processes of this job share one device, over Gloo, which ACC_TEST_SHARE_GPU asks for: NCCL
/// refuses two ranks on a device.
bool devices_are_shared();

/// The options for Accelerators in this job.
AcceleratorOptions job_options();

/// The state of this process. Not an Accelerator, since all Accelerators that exist at a time must have the
/// same precision.
const PartialState& job();

/// The process group of the job, also if the job has one process and therefore no group of its own.
std::shared_ptr<ProcessGroup> group();

/// A folder that all processes of the job share, empty at the start of the program.
std::filesystem::path shared_folder();

struct NetImpl : torch::nn::Module {
  NetImpl();
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear first;
  torch::nn::Linear second;
};
TORCH_MODULE(Net);

}  // namespace acc::test
