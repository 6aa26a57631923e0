// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace acc {

/// Copies batches to a device while the device computes: on a stream of its own, from page-locked memory. On
/// the CPU it does nothing.
class DeviceCopy {
 public:
  explicit DeviceCopy(at::Device device);
  ~DeviceCopy();
  DeviceCopy(DeviceCopy&&) noexcept;
  DeviceCopy& operator=(DeviceCopy&&) noexcept;

  /// Whether there is something to do.
  bool needed() const;

  /// Begins to copy and returns the copy, to be used only after `finish`.
  at::Tensor start(const at::Tensor& tensor);

  /// What the calling thread computes on `tensor` from now on comes after its copy.
  void finish(const at::Tensor& tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The tensor in page-locked memory. Only where there is an accelerator.
at::Tensor pin(const at::Tensor& tensor);

}  // namespace acc
