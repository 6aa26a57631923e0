// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/fsdp.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

using acc::launcher::Settings;
using acc::launcher::Value;
using acc::test::error_of;
using acc::test::inputs;

namespace {

acc::Environment environment_of(const std::vector<std::string>& words, const Value& file = Value::object()) {
  acc::launcher::LaunchInputs given = inputs(words);
  given.file = acc::test::file(file);
  return acc::launcher::fsdp_environment(Settings(given));
}

}  // namespace

TEST_CASE("fsdp: defaults are accelerate's", "[plan]") {
  CHECK(environment_of({"train.py"}) == acc::Environment{{"ACCELERATE_USE_FSDP", "true"},
                                                         {"FSDP_ACTIVATION_CHECKPOINTING", "false"},
                                                         {"FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "false"},
                                                         {"FSDP_CPU_RAM_EFFICIENT_LOADING", "true"},
                                                         {"FSDP_FORWARD_PREFETCH", "false"},
                                                         {"FSDP_MIN_NUM_PARAMS", "100000000"},
                                                         {"FSDP_OFFLOAD_PARAMS", "false"},
                                                         {"FSDP_RESHARD_AFTER_FORWARD", "true"},
                                                         {"FSDP_SHARDING_STRATEGY", "FULL_SHARD"},
                                                         {"FSDP_SYNC_MODULE_STATES", "true"},
                                                         {"FSDP_USE_ORIG_PARAMS", "true"},
                                                         {"FSDP_VERSION", "1"}});
}

TEST_CASE("fsdp: the sharding answer of accelerate's questionnaire reaches the workers", "[plan]") {
  const Value answered = {{"fsdp_reshard_after_forward", "SHARD_GRAD_OP"}};
  CHECK(environment_of({"train.py"}, answered).get("FSDP_SHARDING_STRATEGY") == "SHARD_GRAD_OP");
  CHECK(environment_of({"train.py"}, answered).get("FSDP_RESHARD_AFTER_FORWARD") == "shard_grad_op");
  CHECK(environment_of({"--fsdp_sharding_strategy", "no_shard", "train.py"}, answered)
            .get("FSDP_SHARDING_STRATEGY") == "NO_SHARD");
}

TEST_CASE("fsdp: what cannot stand together is refused with both names", "[plan]") {
  CHECK(error_of([] {
          environment_of({"--fsdp_sync_module_states", "false", "train.py"});
        }) ==
        "--fsdp_sync_module_states: fsdp_cpu_ram_efficient_loading needs fsdp_sync_module_states: only the "
        "first "
        "process loads the model (turn both on, or both off)");
  CHECK(error_of([] {
          environment_of({"--fsdp_version", "2", "--fsdp_reshard_after_forward", "full_shard", "train.py"});
        }) ==
        "--fsdp_reshard_after_forward: fsdp_reshard_after_forward is true or false in version 2, not "
        "'FULL_SHARD' (`acc to-fsdp2` rewrites a file of version 1)");
  CHECK(error_of([] {
          environment_of({"--fsdp_version", "2", "--fsdp_state_dict_type", "LOCAL_STATE_DICT", "train.py"});
        }) ==
        "--fsdp_state_dict_type: version 2 of FSDP has no LOCAL_STATE_DICT (SHARDED_STATE_DICT or "
        "FULL_STATE_DICT)");
}
