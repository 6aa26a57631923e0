// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/config_section.hpp"
#include "support/errors.hpp"

namespace schema_sharding_test {

using acc::launcher::Value;
using acc::test::error_of;
using acc::test::read_section;

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

TEST_CASE("schema_deepspeed: stages are 0 to 3, devices are words", "[config]") {
  CHECK(read_section("deepspeed_config", "  zero_stage: '3'\n  offload_param_device: NVMe\n") ==
        Value{{"zero_stage", 3}, {"offload_param_device", "nvme"}});
  CHECK(error_of([] { read_section("deepspeed_config", "  zero_stage: 4\n"); }) ==
        "c.yaml:3:15: zero_stage must be at most 3, not 4");
}

TEST_CASE("schema_deepspeed: clipping is a number in YAML 1.1's eyes too", "[config]") {
  CHECK(read_section("deepspeed_config", "  gradient_clipping: 1e-1\n") == Value{{"gradient_clipping", 0.1}});
}

TEST_CASE("schema_megatron: keys without the prefix count, which accelerate drops", "[config]") {
  CHECK(read_section("megatron_lm_config", "  tp_degree: 2\n  megatron_lm_pp_degree: 4\n") ==
        Value{{"megatron_lm_tp_degree", 2}, {"megatron_lm_pp_degree", 4}});
}

TEST_CASE("schema_megatron: a degree is at least 1", "[config]") {
  CHECK(error_of([] { read_section("megatron_lm_config", "  tp_degree: 0\n"); }) ==
        "c.yaml:3:14: megatron_lm_tp_degree must be at least 1, not 0");
}

TEST_CASE("schema_parallelism: keys without the prefix count, which accelerate drops", "[config]") {
  CHECK(
      read_section("parallelism_config", "  tp_size: 2\n  parallelism_config_cp_comm_strategy: alltoall\n") ==
      Value{{"parallelism_config_tp_size", 2}, {"parallelism_config_cp_comm_strategy", "alltoall"}});
}

}  // namespace schema_sharding_test
