// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

TEST_CASE("questions_megatron: recorded answers give accelerate's file", "[config]") {
  const std::string name = GENERATE("config_megatron", "config_megatron_tp1_pp1");
  INFO(name);
  CHECK(acc::test::file_of(name) == acc::test::recorded_file(name));
}
