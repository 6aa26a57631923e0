// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>

#include "acc/runtime/precision/mixed_precision.hpp"

namespace acc {

struct AutocastOptions {
  /// Off: computes in float32 again, inside of another Autocast.
  bool enabled = true;
  /// Keeps converted weights until the outermost ends. Default: as it is set on this thread, which is on.
  std::optional<bool> cache_enabled = {};
};

/// While it lives, this thread computes in the given precision where that is safe, as Python's
/// torch.autocast. With MixedPrecision::no it does nothing.
class Autocast {
 public:
  explicit Autocast(MixedPrecision precision, c10::DeviceType device = c10::DeviceType::CPU,
                    AutocastOptions options = {});
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
