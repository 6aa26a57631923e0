// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/accelerate_environment.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace accelerate_features_test {

using acc::launcher::Settings;
using acc::launcher::Value;
using acc::test::error_of;
using acc::test::inputs;

namespace {

acc::Environment environment_of(const std::vector<std::string>& words, const Value& file = Value::object()) {
  acc::launcher::LaunchInputs launch_inputs = inputs(words);
  launch_inputs.file = acc::test::file(file);
  return acc::launcher::fsdp_environment(Settings(launch_inputs));
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

TEST_CASE("fsdp: contradictions are refused with both names", "[plan]") {
  CHECK(error_of([] { environment_of({"--fsdp_sync_module_states", "false", "train.py"}); }) ==
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

TEST_CASE("fsdp: version 2 refuses a strategy of version 1 that it would not follow", "[plan]") {
  const auto refusal = [](const std::vector<std::string>& words, Value file) {
    file["fsdp_version"] = 2;
    return error_of([&] { environment_of(words, file); });
  };
  CHECK(refusal({"train.py"}, {{"fsdp_sharding_strategy", "NO_SHARD"}})
            .ends_with("version 2 of FSDP has no fsdp_sharding_strategy NO_SHARD: it shards everything, and "
                       "fsdp_reshard_after_forward is true (fsdp_version 1 has it)"));
  CHECK(refusal({"--fsdp_sharding_strategy", "shard_grad_op", "train.py"}, Value::object()) ==
        "--fsdp_sharding_strategy: version 2 of FSDP has no fsdp_sharding_strategy SHARD_GRAD_OP: it shards "
        "everything, and fsdp_reshard_after_forward is true (leave it out; `acc to-fsdp2` rewrites a file of "
        "version 1)");
  CHECK(refusal({"train.py"}, {{"fsdp_sharding_strategy", "HYBRID_SHARD"},
                               {"fsdp_reshard_after_forward", false}}) != "no error");
  CHECK(refusal({"train.py"}, {{"fsdp_sharding_strategy", "FULL_SHARD"}}) == "no error");
  CHECK(refusal({"train.py"}, {{"fsdp_sharding_strategy", "SHARD_GRAD_OP"},
                               {"fsdp_reshard_after_forward", false}}) == "no error");
}

TEST_CASE("fsdp: version 1 refuses fsdp_reshard_after_forward false where it would shard fully", "[plan]") {
  const Value file = {{"fsdp_reshard_after_forward", false}};
  CHECK(error_of([&] { environment_of({"train.py"}, file); })
            .ends_with("fsdp_reshard_after_forward false has no effect in version 1, the default of "
                       "fsdp_version (fsdp_version 2 has it; in version 1 it is fsdp_sharding_strategy "
                       "SHARD_GRAD_OP)"));
  CHECK(environment_of({"--fsdp_sharding_strategy", "SHARD_GRAD_OP", "train.py"}, file)
            .get("FSDP_SHARDING_STRATEGY") == "SHARD_GRAD_OP");
  CHECK(environment_of({"--fsdp_version", "2", "train.py"}, file).get("FSDP_RESHARD_AFTER_FORWARD") ==
        "false");
}

TEST_CASE("fp8: the backend is passed in upper case", "[plan]") {
  const acc::launcher::LaunchInputs launch_inputs = acc::test::inputs(
      {"--fp8_backend", "te", "--fp8_override_linear_precision", "true,false,true", "train.py"});
  const acc::Environment environment = acc::launcher::fp8_environment(acc::launcher::Settings(launch_inputs));
  CHECK(environment.get("ACCELERATE_FP8_BACKEND") == "TE");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_FPROP") == "1");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_DGRAD") == "0");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_WGRAD") == "1");
  CHECK(environment.get("ACCELERATE_FP8_PAD_INNER_DIM") == "1");
  CHECK_FALSE(environment.contains("ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING"));
}

TEST_CASE("fp8: booleans of a file are passed as in Python", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = acc::test::inputs({"train.py"});
  launch_inputs.file = acc::test::file({{"fp8_pad_inner_dim", false}, {"fp8_use_mxfp8_block_scaling", true}});
  const acc::Environment environment = acc::launcher::fp8_environment(acc::launcher::Settings(launch_inputs));
  CHECK(environment.get("ACCELERATE_FP8_PAD_INNER_DIM") == "False");
  CHECK(environment.get("ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING") == "True");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_FPROP") == "False");
}

TEST_CASE("megatron: passes accelerate's defaults, and flags", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"--megatron_lm_tp_degree", "2", "--megatron_lm_sequence_parallelism", "true",
                         "--megatron_lm_no_load_optim", "true", "train.py"});
  launch_inputs.file = acc::test::file({{"megatron_lm_recompute_activations", true}});
  CHECK(acc::launcher::megatron_environment(acc::launcher::Settings(launch_inputs)) ==
        acc::Environment{{"ACCELERATE_USE_MEGATRON_LM", "true"},
                         {"MEGATRON_LM_EOD_MASK_LOSS", "False"},
                         {"MEGATRON_LM_GRADIENT_CLIPPING", "1.0"},
                         {"MEGATRON_LM_NO_LOAD_OPTIM", "True"},
                         {"MEGATRON_LM_NO_SAVE_OPTIM", "False"},
                         {"MEGATRON_LM_OPTIMIZER_CPU_OFFLOAD", "False"},
                         {"MEGATRON_LM_OVERLAP_CPU_OPTIMIZER_D2H_H2D", "False"},
                         {"MEGATRON_LM_PP_DEGREE", "1"},
                         {"MEGATRON_LM_RECOMPUTE_ACTIVATIONS", "True"},
                         {"MEGATRON_LM_SEQUENCE_PARALLELISM", "true"},
                         {"MEGATRON_LM_TP_DEGREE", "2"},
                         {"MEGATRON_LM_USE_CUSTOM_FSDP", "False"},
                         {"MEGATRON_LM_USE_PRECISION_AWARE_OPTIMIZER", "False"}});
}

TEST_CASE("parallelism: the file's section holds unless a flag chose another way to train", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = inputs({"train.py"});
  CHECK_FALSE(acc::launcher::uses_parallelism(Settings(launch_inputs)));
  launch_inputs.file = acc::test::file({{"parallelism_config", {{"parallelism_config_tp_size", 2}}}});
  CHECK(acc::launcher::uses_parallelism(Settings(launch_inputs)));
  launch_inputs.command_line = inputs({"--use_fsdp", "train.py"}).command_line;
  CHECK_FALSE(acc::launcher::uses_parallelism(Settings(launch_inputs)));
  launch_inputs.command_line = inputs({"--use_fsdp", "--use_parallelism_config", "train.py"}).command_line;
  CHECK(acc::launcher::uses_parallelism(Settings(launch_inputs)));
}

TEST_CASE("parallelism: details of a dimension are passed only if it is used", "[plan]") {
  const auto variables = [](const std::vector<std::string>& words) {
    return acc::launcher::parallelism_environment(Settings(inputs(words)));
  };
  CHECK(variables({"train.py"}) == acc::Environment{{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"},
                                                    {"PARALLELISM_CONFIG_CP_BACKEND", "torch"},
                                                    {"PARALLELISM_CONFIG_CP_SIZE", "1"},
                                                    {"PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "1"},
                                                    {"PARALLELISM_CONFIG_DP_SHARD_SIZE", "1"},
                                                    {"PARALLELISM_CONFIG_SP_BACKEND", "deepspeed"},
                                                    {"PARALLELISM_CONFIG_SP_SIZE", "1"},
                                                    {"PARALLELISM_CONFIG_TP_SIZE", "1"}});
  const acc::Environment wide =
      variables({"--parallelism_config_cp_size", "2", "--parallelism_config_sp_size", "2", "train.py"});
  CHECK(wide.get("PARALLELISM_CONFIG_CP_COMM_STRATEGY") == "allgather");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_SEQ_LENGTH") == "None");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_SEQ_LENGTH_IS_VARIABLE") == "True");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_ATTN_IMPLEMENTATION") == "sdpa");
}

namespace {

acc::launcher::LaunchInputs machine_with(int gpus, const std::string& name, const std::string& driver) {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"train.py"}, acc::launcher::Dialect::launch, gpus);
  for (acc::Gpu& gpu : launch_inputs.machine.gpus) gpu.name = name;
  launch_inputs.machine.driver_version = driver;
  return launch_inputs;
}

}  // namespace

TEST_CASE("peer_to_peer: is disabled for several RTX 40 cards with an old driver", "[plan]") {
  const std::string card = "NVIDIA GeForce RTX 4090";
  const acc::Environment off = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_P2P_DISABLE", "1"}};
  CHECK(peer_to_peer_environment(machine_with(2, card, "550.40.06")) == off);
  CHECK(peer_to_peer_environment(machine_with(2, card, "535.183.01")) == off);
  CHECK(peer_to_peer_environment(machine_with(2, card, "550.40.07")).empty());
  CHECK(peer_to_peer_environment(machine_with(1, card, "535.1")).empty());
  CHECK(peer_to_peer_environment(machine_with(2, "NVIDIA H100", "535.1")).empty());
}

TEST_CASE("peer_to_peer: inherited values are kept", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = machine_with(2, "NVIDIA GeForce RTX 4090", "535.1");
  launch_inputs.environment.set("NCCL_P2P_DISABLE", "0");
  CHECK(peer_to_peer_environment(launch_inputs) == acc::Environment{{"NCCL_IB_DISABLE", "1"}});
}

}  // namespace accelerate_features_test
