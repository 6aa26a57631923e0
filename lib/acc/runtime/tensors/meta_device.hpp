// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc {

/// While it exists, tensors that this thread creates without naming a device are on the meta device: they
/// have a shape and a type, but no memory. For models that are larger than the memory of a process:
///
///     auto model = [] { const acc::MetaDevice meta; return Transformer(options); }();
///     acc::materialize(*model, "weights");
///
/// What the constructors of modules compute for their first values is left out. One that reads or lists
/// values, as `at::tensor({1, 2})` does, must name a device for them, such as at::kCPU. PyTorch has
/// `torch.device("meta")` for it. Throws Error{system} when this LibTorch does not let acc see what is
/// created.
class MetaDevice {
 public:
  MetaDevice();
  ~MetaDevice();
  MetaDevice(const MetaDevice&) = delete;
  MetaDevice& operator=(const MetaDevice&) = delete;

 private:
  bool was_on_;
};

}  // namespace acc
