// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace acc::detail {

/// Copies batches to a device while the device computes, on a separate stream. Copies from page-locked memory
/// overlap with the computation. Does nothing on the CPU.
class DeviceCopy {
 public:
  explicit DeviceCopy(at::Device device);
  ~DeviceCopy();
  DeviceCopy(DeviceCopy&&) noexcept;
  DeviceCopy& operator=(DeviceCopy&&) noexcept;

  /// Whether batches have to be copied.
  bool needed() const;

  /// Starts a copy and returns it; it may be used only after `finish`.
  at::Tensor start(const at::Tensor& tensor);

  /// Makes the calling thread's further operations on `tensor` wait for its copy.
  void finish(const at::Tensor& tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A copy of the tensor in page-locked memory; requires an accelerator.
at::Tensor pin(const at::Tensor& tensor);

}  // namespace acc::detail
