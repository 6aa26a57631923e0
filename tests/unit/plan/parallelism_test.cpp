// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/parallelism.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

using acc::launcher::Settings;
using acc::test::inputs;

TEST_CASE("parallelism: the file's section holds unless a flag chose another way to train", "[plan]") {
  acc::launcher::LaunchInputs given = inputs({"train.py"});
  CHECK_FALSE(acc::launcher::uses_parallelism(Settings(given)));
  given.file = acc::test::file({{"parallelism_config", {{"parallelism_config_tp_size", 2}}}});
  CHECK(acc::launcher::uses_parallelism(Settings(given)));
  given.command_line = inputs({"--use_fsdp", "train.py"}).command_line;
  CHECK_FALSE(acc::launcher::uses_parallelism(Settings(given)));
  given.command_line = inputs({"--use_fsdp", "--use_parallelism_config", "train.py"}).command_line;
  CHECK(acc::launcher::uses_parallelism(Settings(given)));
}

TEST_CASE("parallelism: a dimension's details are told where the dimension is used", "[plan]") {
  const auto of = [](const std::vector<std::string>& words) {
    return acc::launcher::parallelism_environment(Settings(inputs(words)));
  };
  CHECK(of({"train.py"}) == acc::Environment{{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"},
                                             {"PARALLELISM_CONFIG_CP_BACKEND", "torch"},
                                             {"PARALLELISM_CONFIG_CP_SIZE", "1"},
                                             {"PARALLELISM_CONFIG_DP_REPLICATE_SIZE", "1"},
                                             {"PARALLELISM_CONFIG_DP_SHARD_SIZE", "1"},
                                             {"PARALLELISM_CONFIG_SP_BACKEND", "deepspeed"},
                                             {"PARALLELISM_CONFIG_SP_SIZE", "1"},
                                             {"PARALLELISM_CONFIG_TP_SIZE", "1"}});
  const acc::Environment wide =
      of({"--parallelism_config_cp_size", "2", "--parallelism_config_sp_size", "2", "train.py"});
  CHECK(wide.get("PARALLELISM_CONFIG_CP_COMM_STRATEGY") == "allgather");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_SEQ_LENGTH") == "None");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_SEQ_LENGTH_IS_VARIABLE") == "True");
  CHECK(wide.get("PARALLELISM_CONFIG_SP_ATTN_IMPLEMENTATION") == "sdpa");
}
