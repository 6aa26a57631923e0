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

TEST_CASE("schema_deepspeed: stages are 0 to 3, devices are words", "[config]") {
  CHECK(read_section("deepspeed_config", "  zero_stage: '3'\n  offload_param_device: NVMe\n") ==
        Value{{"zero_stage", 3}, {"offload_param_device", "nvme"}});
  CHECK(error_of([] { read_section("deepspeed_config", "  zero_stage: 4\n"); }) ==
        "c.yaml:3:15: zero_stage must be at most 3, not 4");
}

TEST_CASE("schema_deepspeed: clipping is a number in YAML 1.1's eyes too", "[config]") {
  CHECK(read_section("deepspeed_config", "  gradient_clipping: 1e-1\n") == Value{{"gradient_clipping", 0.1}});
}
