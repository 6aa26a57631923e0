// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

/// The number format of a model's forward pass. Parameters and gradients stay float32. In fp16 the
/// loss is scaled, see GradScaler.
enum class MixedPrecision { no, fp16, bf16 };

/// Parses accelerate's names. `where` is the flag or variable that held it. Throws Error{usage} for an
/// unknown precision, and for one that acc does not support.
MixedPrecision parse_mixed_precision(std::string_view word, std::string_view where);

std::string_view to_string(MixedPrecision precision);

/// The arguments of PyTorch's autocast.
struct AutocastOptions {
  /// If false, computes in float32, within another Autocast.
  bool enabled = true;
  /// Caches converted weights until the outermost Autocast ends. Default: this thread's setting, which is on
  /// by default.
  std::optional<bool> cache_enabled = {};
};

/// While this object exists, the calling thread runs the operations that are safe in it in the given
/// precision, as Python's torch.autocast. With MixedPrecision::no it does nothing.
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

namespace detail {

/// Throws an Error{usage} that forward returns a type whose tensors cannot be converted to float32.
[[noreturn]] void refuse_opaque(std::string_view type);

/// Converts every float16 and bfloat16 tensor in the output of a forward pass to float32.
template <class Output>
Output to_float32(Output output) {
  for_each_tensor(output, [](at::Tensor& part) {
    if (part.scalar_type() == at::kBFloat16 || part.scalar_type() == at::kHalf) part = part.to(at::kFloat);
  });
  return output;
}

}  // namespace detail

}  // namespace acc
