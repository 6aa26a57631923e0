// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

Value read_section(const std::string& section, const std::string& lines) {
  const std::string text = "distributed_type: MULTI_GPU\n" + section + ":\n" + lines;
  return parse_config(text, "c.yaml").values.at(section);
}

}  // namespace

TEST_CASE("schema_megatron: keys without the prefix count, which accelerate drops", "[config]") {
  CHECK(read_section("megatron_lm_config", "  tp_degree: 2\n  megatron_lm_pp_degree: 4\n") ==
        Value{{"megatron_lm_tp_degree", 2}, {"megatron_lm_pp_degree", 4}});
}

TEST_CASE("schema_megatron: a degree is at least 1", "[config]") {
  CHECK(error_of([] { read_section("megatron_lm_config", "  tp_degree: 0\n"); }) ==
        "c.yaml:3:14: megatron_lm_tp_degree must be at least 1, not 0");
}
