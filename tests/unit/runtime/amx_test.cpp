// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/amx.hpp"

#include "acc/base/environment.hpp"
#include "support/catch.hpp"

TEST_CASE("amx: announced without a palette is broken, all else is not", "[runtime]") {
  constexpr std::uint32_t kTiles = 1U << 24U;
  CHECK(acc::amx_is_broken({.features = kTiles, .palettes = 0}));
  CHECK_FALSE(acc::amx_is_broken({.features = kTiles, .palettes = 1}));
  CHECK_FALSE(acc::amx_is_broken({.features = 0, .palettes = 0}));
}

TEST_CASE("amx: ACC_AMX_GUARD switches the guard off", "[runtime]") {
  CHECK(acc::may_guard_amx({}));
  CHECK(acc::may_guard_amx({{"ACC_AMX_GUARD", "1"}}));
  CHECK_FALSE(acc::may_guard_amx({{"ACC_AMX_GUARD", "0"}}));
  CHECK_FALSE(acc::may_guard_amx({{"ACC_AMX_GUARD", "no"}}));
}

TEST_CASE("amx: loading the library limits oneDNN where AMX is broken", "[runtime]") {
  if (acc::amx_is_broken(acc::ask_amx()))
    CHECK(acc::Environment::of_process().contains("ONEDNN_MAX_CPU_ISA"));
}
