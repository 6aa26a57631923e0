// SPDX-License-Identifier: Apache-2.0
// Seeds, takes a step on the device that Accelerator chooses, and prints what it finds, a line each.
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"

namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// NCCL's error in a process without a device.
std::string nccl_answer(const acc::detail::CudaTable& table) {
  try {
    return table
        .make_nccl_backend(c10::make_intrusive<c10d::HashStore>(), 0, 1, std::chrono::minutes(1),
                           c10::Device(c10::kCUDA, 0))
        ->getBackendName();
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  }
}

}  // namespace

int main() {
  const acc::detail::CudaPlugin& plugin = acc::detail::cuda_plugin();
  const auto* const* table = std::get_if<const acc::detail::CudaTable*>(&plugin);
  std::printf("plugin: %s\n", table != nullptr ? "loaded" : std::get<std::string>(plugin).c_str());

  // In the order of a training program: before the Accelerator there is a seed.
  acc::set_seed(1);
  const acc::detail::CudaDevices devices = acc::detail::find_cuda_devices(plugin);
  std::printf("devices: %d %s\n", devices.count, devices.why_none.c_str());
  if (table != nullptr) std::printf("nccl: %s\n", nccl_answer(**table).c_str());

  acc::Accelerator accelerator;
  std::printf("device: %s\n", accelerator.device().str().c_str());
  auto model = accelerator.prepare(torch::nn::Linear(2, 1));
  accelerator.backward(model(at::ones({3, 2}, accelerator.device())).sum());
  std::printf("gradient: %g\n", model->weight.grad().sum().item<double>());
}
