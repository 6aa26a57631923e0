// SPDX-License-Identifier: Apache-2.0
// libacc_cuda.so. ProcessGroupNCCL.hpp declares its class only if this macro is defined.
#define USE_C10D_NCCL
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/version.h>

#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/NCCLUtils.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "acc/runtime/comm/cuda_plugin.hpp"

namespace acc::detail {
namespace {

int count_devices(std::string& reason) {
  try {
    return c10::cuda::device_count_ensure_non_zero();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  return 0;
}

std::mutex failures;
std::optional<OutOfMemory> last_failure;

// LibTorch's allocator calls it, without its lock, just before it throws.
void on_out_of_memory(std::int64_t device, std::size_t requested, std::size_t total, std::size_t free) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto index = static_cast<c10::DeviceIndex>(device);
  const auto stats = allocator::getDeviceStats(index);
  // From 0 it would begin with what is free on the device.
  std::size_t largest = 1;
  allocator::cacheInfo(index, &largest);
  const std::scoped_lock lock(failures);
  last_failure = OutOfMemory{.device = index,
                             .requested = requested,
                             .free = free,
                             .total = total,
                             .allocated = static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current),
                             .reserved = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current),
                             .largest_free_block = largest};
}

std::optional<OutOfMemory> last_out_of_memory() {
  const std::scoped_lock lock(failures);
  return last_failure;
}

void set_device(c10::DeviceIndex device) {
  c10::cuda::set_device(device);
  static std::once_flag once;
  std::call_once(once, [] {
    // The allocator has devices only from here on.
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(on_out_of_memory);
  });
}

void synchronize(c10::DeviceIndex device) {
  const c10::cuda::CUDAGuard guard(device);
  c10::cuda::device_synchronize();
}

void empty_cache() {
  c10::cuda::CUDACachingAllocator::emptyCache();
}

MemoryUse allocated_memory(c10::DeviceIndex device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  return {.bytes = stats.allocated_bytes[kAll].current, .peak = stats.allocated_bytes[kAll].peak};
}

void reset_peak_memory(c10::DeviceIndex device) {
  c10::cuda::CUDACachingAllocator::resetPeakStats(device);
}

// The options contain a struct of nccl.h, whose size changes between minor versions.
void require_same_nccl() {
  const auto [major, minor, patch] = c10d::getNcclVersionTuple();
  TORCH_CHECK(major == NCCL_MAJOR && minor == NCCL_MINOR,
              "libacc_cuda.so was built with the headers of NCCL ", NCCL_MAJOR, ".", NCCL_MINOR,
              " but runs with NCCL ", major, ".", minor, ".", patch,
              ": build acc again with the headers of the one that is used");
}

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int size, std::chrono::milliseconds timeout,
                                                    c10::Device device) {
  require_same_nccl();
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("cuda/", store), rank, size, options);
  backend->setBoundDeviceId(device);
  return backend;
}

}  // namespace
}  // namespace acc::detail

extern "C" [[gnu::visibility("default")]] const acc::detail::CudaTable* acc_cuda_table() {
  static constexpr acc::detail::CudaTable kTable{.torch_version = TORCH_VERSION,
                                                 .count_devices = acc::detail::count_devices,
                                                 .set_device = acc::detail::set_device,
                                                 .last_out_of_memory = acc::detail::last_out_of_memory,
                                                 .synchronize = acc::detail::synchronize,
                                                 .empty_cache = acc::detail::empty_cache,
                                                 .make_nccl_backend = acc::detail::make_nccl_backend,
                                                 .allocated_memory = acc::detail::allocated_memory,
                                                 .reset_peak_memory = acc::detail::reset_peak_memory};
  return &kTable;
}
