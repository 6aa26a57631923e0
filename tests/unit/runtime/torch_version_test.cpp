// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/torch_version.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

TEST_CASE("torch_version: the version is found in LibTorch's configuration", "[runtime]") {
  CHECK(acc::torch_version_in("  - Build settings: A=1, TORCH_VERSION=2.11.0, USE_CUDA=ON") == "2.11.0");
  CHECK(acc::torch_version_in("nothing") == "");
}

TEST_CASE("torch_version: another version is refused, another build of it is not", "[runtime]") {
  CHECK_NOTHROW(acc::require_same_torch("2.11.0", "2.11.0+cu130"));
  CHECK_THROWS_AS(acc::require_same_torch("2.11.0", "2.11.1"), acc::Error);
  CHECK_THROWS_AS(acc::require_same_torch("2.11.0", ""), acc::Error);
}

TEST_CASE("torch_version: these tests run with the LibTorch that they were built for", "[runtime]") {
  CHECK_NOTHROW(acc::require_compiled_torch());
}
