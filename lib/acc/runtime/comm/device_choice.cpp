// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/device_choice.hpp"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"

namespace acc::detail {
namespace {

// CUDA ignores the list from the first invalid entry on, so that a list that begins with one is empty.
bool hides_all_devices(const Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  return visible && (trim(*visible).empty() || trim(*visible).starts_with('-'));
}

}  // namespace

DriverSigns find_cuda_driver() {
  DriverSigns signs;
  std::error_code ignored;
  signs.kernel_module = std::filesystem::exists("/proc/driver/nvidia", ignored);
  if (void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    signs.library = true;
    ::dlclose(library);
  }
  return signs;
}

bool may_load_cuda(const Environment& environment, const DriverSigns& driver) {
  if (parse_truth(environment.get("ACCELERATE_USE_CPU")).value_or(false)) return false;
  if (!parse_truth(environment.get("ACC_LOAD_CUDA")).value_or(true)) return false;
  if (hides_all_devices(environment)) return false;
  return driver.kernel_module || driver.library;
}

bool must_use_cpu(bool option, const Environment& environment) {
  return option || parse_truth(environment.get("ACCELERATE_USE_CPU")).value_or(false);
}

c10::Device choose_device(const WorkerEnv& worker, int cuda_devices, bool may_share) {
  if (cuda_devices == 0) return c10::kCPU;
  if (worker.local_rank < cuda_devices || may_share) {
    return {c10::kCUDA, static_cast<c10::DeviceIndex>(worker.local_rank % cuda_devices)};
  }
  throw Error({.what = fmt::format("there is no GPU for local rank {}: this process sees {}",
                                   worker.local_rank, cuda_devices),
               .where = fmt::format("rank {}", worker.rank),
               .hint = fmt::format("start at most {} on this machine (--num_processes), check "
                                   "CUDA_VISIBLE_DEVICES, train on the CPU with --cpu, or let "
                                   "processes share a GPU (CudaBackend::gloo)",
                                   cuda_devices)});
}

c10::Device claim_device(const WorkerEnv& worker, bool cpu, bool may_share) {
  if (must_use_cpu(cpu, Environment::of_process())) return c10::kCPU;
  const CudaDevices devices = find_cuda_devices(cuda_plugin());
  const c10::Device device = choose_device(worker, devices.count, may_share);
  if (device.is_cuda()) {
    cuda_table().set_device(device.index());
  } else if (!devices.why_none.empty() && worker.local_rank == 0) {
    TORCH_WARN_ONCE("no CUDA device: ", devices.why_none, "; training runs on the CPU");
  }
  return device;
}

}  // namespace acc::detail
