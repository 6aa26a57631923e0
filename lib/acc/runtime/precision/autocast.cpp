// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace acc {

Autocast::Autocast(MixedPrecision precision, c10::DeviceType device, AutocastOptions options)
    : active_(precision != MixedPrecision::no), device_(device) {
  if (!active_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  old_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, options.enabled);
  at::autocast::set_autocast_dtype(device_, precision == MixedPrecision::fp16 ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(options.cache_enabled.value_or(was_cached_));
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!active_) return;
  // The cache holds converted weights, which the next optimizer step makes stale.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_type_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

}  // namespace acc
