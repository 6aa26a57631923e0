// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/autocast.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace autocast_test {

namespace {

std::string failure_of(const std::string& word) {
  try {
    acc::parse_mixed_precision(word, "PLACE");
  } catch (const acc::Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("mixed_precision: accelerate's names are accepted, in any case", "[runtime]") {
  CHECK(acc::parse_mixed_precision("no", "") == acc::MixedPrecision::no);
  CHECK(acc::parse_mixed_precision("BF16", "") == acc::MixedPrecision::bf16);
  for (const auto precision :
       {acc::MixedPrecision::no, acc::MixedPrecision::fp16, acc::MixedPrecision::bf16}) {
    CHECK(acc::parse_mixed_precision(acc::to_string(precision), "") == precision);
  }
}

TEST_CASE("mixed_precision: the error for an unsupported precision lists the supported ones", "[runtime]") {
  CHECK(failure_of("fp8") == "PLACE: fp8 is not supported by the C++ runtime (use bf16, fp16 or no)");
  CHECK(failure_of("half") == "PLACE: 'half' is not a precision (use bf16, fp16 or no)");
}

TEST_CASE("autocast: the precision applies only while the guard exists, also nested", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2, 3, 4}, {2, 2}, at::kFloat);
  const auto type = [&] { return x.mm(x).scalar_type(); };
  {
    const acc::Autocast outer(acc::MixedPrecision::bf16);
    CHECK(type() == at::kBFloat16);
    {
      const acc::Autocast inner(acc::MixedPrecision::bf16);
      CHECK(type() == at::kBFloat16);
    }
    CHECK(type() == at::kBFloat16);
  }
  CHECK(type() == at::kFloat);
  const acc::Autocast inactive(acc::MixedPrecision::no);
  CHECK(type() == at::kFloat);
}

TEST_CASE("autocast: fp16 computes in half, and it can be switched off for a part", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2, 3, 4}, {2, 2}, at::kFloat);
  const auto type = [&] { return x.mm(x).scalar_type(); };
  const acc::Autocast half(acc::MixedPrecision::fp16);
  CHECK(type() == at::kHalf);
  {
    const acc::Autocast disabled(acc::MixedPrecision::fp16, c10::DeviceType::CPU, {.enabled = false});
    CHECK(type() == at::kFloat);
  }
  CHECK(type() == at::kHalf);
}

TEST_CASE("autocast: CUDA and CPU are switched separately", "[runtime]") {
  const acc::Autocast cuda(acc::MixedPrecision::fp16, c10::DeviceType::CUDA, {.cache_enabled = false});
  CHECK(at::autocast::is_autocast_enabled(at::kCUDA));
  CHECK(at::autocast::get_autocast_dtype(at::kCUDA) == at::kHalf);
  CHECK_FALSE(at::autocast::is_autocast_cache_enabled());
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

}  // namespace autocast_test
