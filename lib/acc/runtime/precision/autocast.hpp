// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "acc/runtime/precision/mixed_precision.hpp"

namespace acc {

/// While it lives, this thread computes in the given precision where that is safe, as Python's
/// torch.autocast. With MixedPrecision::no it does nothing.
class Autocast {
 public:
  explicit Autocast(MixedPrecision precision, c10::DeviceType device = c10::DeviceType::CPU);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool active_;
  c10::DeviceType device_;
  bool was_enabled_ = false;
  bool was_cached_ = false;
  c10::ScalarType old_type_ = c10::ScalarType::Float;
};

}  // namespace acc
