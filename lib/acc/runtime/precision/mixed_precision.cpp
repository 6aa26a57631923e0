// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/mixed_precision.hpp"

#include <fmt/format.h>

#include <string>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {

MixedPrecision parse_mixed_precision(std::string_view word, std::string_view where) {
  const std::string lower = to_lower(trim(word));
  if (lower == "no") return MixedPrecision::no;
  if (lower == "bf16") return MixedPrecision::bf16;
  const bool known = lower == "fp16" || lower == "fp8";
  throw Error({.what = known ? fmt::format("{} is not supported by the C++ runtime", lower)
                             : fmt::format("'{}' is not a precision", word),
               .where = std::string(where),
               .hint = "use bf16 or no"});
}

std::string_view to_string(MixedPrecision precision) {
  return precision == MixedPrecision::bf16 ? "bf16" : "no";
}

}  // namespace acc
