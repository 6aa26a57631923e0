// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/on_load.hpp"

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace on_load_test {

TEST_CASE("amx: only tiles without a palette are broken", "[runtime]") {
  constexpr std::uint32_t kTiles = 1U << 24U;
  CHECK(acc::detail::amx_is_broken({.features = kTiles, .palettes = 0}));
  CHECK_FALSE(acc::detail::amx_is_broken({.features = kTiles, .palettes = 1}));
  CHECK_FALSE(acc::detail::amx_is_broken({.features = 0, .palettes = 0}));
}

TEST_CASE("amx: ACC_AMX_GUARD switches the guard off", "[runtime]") {
  CHECK(acc::detail::may_guard_amx({}));
  CHECK(acc::detail::may_guard_amx({{"ACC_AMX_GUARD", "1"}}));
  CHECK_FALSE(acc::detail::may_guard_amx({{"ACC_AMX_GUARD", "0"}}));
  CHECK_FALSE(acc::detail::may_guard_amx({{"ACC_AMX_GUARD", "no"}}));
}

TEST_CASE("amx: loading the library limits oneDNN if AMX is broken", "[runtime]") {
  if (acc::detail::amx_is_broken(acc::detail::read_amx_features()))
    CHECK(acc::Environment::of_process().contains("ONEDNN_MAX_CPU_ISA"));
}

TEST_CASE("torch_version: the version is found in LibTorch's configuration", "[runtime]") {
  CHECK(acc::detail::torch_version_in("  - Build settings: A=1, TORCH_VERSION=2.11.0, USE_CUDA=ON") ==
        "2.11.0");
  CHECK(acc::detail::torch_version_in("nothing") == "");
}

TEST_CASE("torch_version: another version is refused, another build of it is not", "[runtime]") {
  CHECK_NOTHROW(acc::detail::require_same_torch("2.11.0", "2.11.0+cu130"));
  CHECK_THROWS_AS(acc::detail::require_same_torch("2.11.0", "2.11.1"), acc::Error);
  CHECK_THROWS_AS(acc::detail::require_same_torch("2.11.0", ""), acc::Error);
}

TEST_CASE("torch_version: these tests run with the LibTorch that they were built for", "[runtime]") {
  CHECK_NOTHROW(acc::detail::require_compiled_torch());
}

}  // namespace on_load_test
