// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/autocast.hpp"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include <string>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {

MixedPrecision parse_mixed_precision(std::string_view word, std::string_view where) {
  const std::string lower = to_lower(trim(word));
  if (lower == "no") return MixedPrecision::no;
  if (lower == "fp16") return MixedPrecision::fp16;
  if (lower == "bf16") return MixedPrecision::bf16;
  throw Error({.what = lower == "fp8" ? "fp8 is not supported by the C++ runtime"
                                      : fmt::format("'{}' is not a precision", word),
               .where = std::string(where),
               .hint = "use bf16, fp16 or no"});
}

std::string_view to_string(MixedPrecision precision) {
  switch (precision) {
    case MixedPrecision::fp16:
      return "fp16";
    case MixedPrecision::bf16:
      return "bf16";
    case MixedPrecision::no:
      break;
  }
  return "no";
}

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
  // The cache contains converted weights, which are outdated after the next optimizer step.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_type_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

namespace detail {

void refuse_opaque(std::string_view type) {
  throw Error({.what = fmt::format(
                   "{} is not a type that acc knows, so its tensors would stay in half precision", type),
               .where = "the output of forward",
               .hint = "return tensors, or tuples, vectors or maps of them, or declare `void "
                       "for_each_tensor(YourType&, const acc::TensorFunction&)` beside the type"});
}

}  // namespace detail

}  // namespace acc
