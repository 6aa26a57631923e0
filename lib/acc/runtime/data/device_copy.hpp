// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace acc::detail {

/// Copies batches to a device while the device computes: on a stream of its own, from page-locked memory.
/// Does nothing on the CPU.
class DeviceCopy {
 public:
  explicit DeviceCopy(at::Device device);
  ~DeviceCopy();
  DeviceCopy(DeviceCopy&&) noexcept;
  DeviceCopy& operator=(DeviceCopy&&) noexcept;

  /// Whether there is something to do.
  bool needed() const;

  /// Starts a copy and returns it; use it only after `finish`.
  at::Tensor start(const at::Tensor& tensor);

  /// Makes the calling thread's further operations on `tensor` wait for its copy.
  void finish(const at::Tensor& tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The tensor in page-locked memory. Only where there is an accelerator.
at::Tensor pin(const at::Tensor& tensor);

}  // namespace acc::detail
