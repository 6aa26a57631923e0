// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc {

/// In which number format a model's forward pass computes. Parameters and gradients stay float32. In fp16 the
/// loss is scaled, see GradScaler.
enum class MixedPrecision { no, fp16, bf16 };

/// Reads accelerate's word for it. `where` is the flag or variable that held it. Throws Error{usage} for a
/// word that is no precision, and for one that acc does not support.
MixedPrecision parse_mixed_precision(std::string_view word, std::string_view where);

std::string_view to_string(MixedPrecision precision);

}  // namespace acc
