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

TEST_CASE("schema_fsdp: keys without the prefix are the same settings", "[config]") {
  CHECK(read_section("fsdp_config", "  version: 2\n  fsdp_offload_params: yes\n") ==
        Value{{"fsdp_version", 2}, {"fsdp_offload_params", true}});
}

TEST_CASE("schema_fsdp: old files number the sharding strategies and name the prefetch otherwise",
          "[config]") {
  CHECK(read_section("fsdp_config",
                     "  sharding_strategy: 2\n  fsdp_backward_prefetch_policy: backward_pre\n") ==
        Value{{"fsdp_sharding_strategy", "SHARD_GRAD_OP"}, {"fsdp_backward_prefetch", "BACKWARD_PRE"}});
}

TEST_CASE("schema_fsdp: resharding is a truth value, or a strategy in version 1", "[config]") {
  CHECK(read_section("fsdp_config", "  fsdp_reshard_after_forward: off\n") ==
        Value{{"fsdp_reshard_after_forward", false}});
  CHECK(read_section("fsdp_config", "  fsdp_reshard_after_forward: HYBRID_SHARD\n") ==
        Value{{"fsdp_reshard_after_forward", "HYBRID_SHARD"}});
  CHECK(error_of([] { read_section("fsdp_config", "  fsdp_reshard_after_forward: perhaps\n"); }) ==
        "c.yaml:3:31: fsdp_reshard_after_forward must be true, false or one of FULL_SHARD, SHARD_GRAD_OP, "
        "NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2, not 'perhaps'");
}
