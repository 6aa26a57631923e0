// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/mixed_precision.hpp"

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

std::string complaint_about(const std::string& word) {
  try {
    acc::parse_mixed_precision(word, "PLACE");
  } catch (const acc::Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("mixed_precision: accelerate's words are read, in any case", "[runtime]") {
  CHECK(acc::parse_mixed_precision("no", "") == acc::MixedPrecision::no);
  CHECK(acc::parse_mixed_precision("BF16", "") == acc::MixedPrecision::bf16);
  for (const auto precision :
       {acc::MixedPrecision::no, acc::MixedPrecision::fp16, acc::MixedPrecision::bf16}) {
    CHECK(acc::parse_mixed_precision(acc::to_string(precision), "") == precision);
  }
}

TEST_CASE("mixed_precision: what is not supported says what is", "[runtime]") {
  CHECK(complaint_about("fp8") == "PLACE: fp8 is not supported by the C++ runtime (use bf16, fp16 or no)");
  CHECK(complaint_about("half") == "PLACE: 'half' is not a precision (use bf16, fp16 or no)");
}
