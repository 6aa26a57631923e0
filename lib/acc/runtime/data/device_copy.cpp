// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/device_copy.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace acc::detail {

struct DeviceCopy::Impl {
  explicit Impl(at::Device on)
      : device(on),
        guards(on.type()),
        stream(guards.getStreamFromGlobalPool(on, /*isHighPriority=*/false)),
        copied(on.type()) {}

  at::Device device;
  c10::impl::VirtualGuardImpl guards;
  c10::Stream stream;
  c10::Event copied;
};

DeviceCopy::DeviceCopy(at::Device device) {
  if (!device.is_cpu()) impl_ = std::make_unique<Impl>(device);
}

DeviceCopy::~DeviceCopy() = default;
DeviceCopy::DeviceCopy(DeviceCopy&&) noexcept = default;
DeviceCopy& DeviceCopy::operator=(DeviceCopy&&) noexcept = default;

bool DeviceCopy::needed() const {
  return impl_ != nullptr;
}

at::Tensor DeviceCopy::start(const at::Tensor& tensor) {
  if (!impl_) return tensor;
  const c10::StreamGuard guard(impl_->stream);
  at::Tensor copy = tensor.to(impl_->device, /*non_blocking=*/true);
  impl_->copied.record(impl_->stream);
  return copy;
}

void DeviceCopy::finish(const at::Tensor& tensor) {
  if (!impl_) return;
  const c10::Stream current = impl_->guards.getStream(impl_->device);
  impl_->copied.block(current);
  // Keeps the allocator from reusing the copy's memory while operations on `current` may still read it.
  tensor.record_stream(current);
}

at::Tensor pin(const at::Tensor& tensor) {
  return tensor.pin_memory();
}

}  // namespace acc::detail
