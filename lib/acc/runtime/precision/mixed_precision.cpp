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

}  // namespace acc
