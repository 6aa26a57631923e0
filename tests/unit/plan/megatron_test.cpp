// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/megatron.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

TEST_CASE("megatron: what accelerate shows by default, and what a flag adds", "[plan]") {
  acc::launcher::LaunchInputs given =
      acc::test::inputs({"--megatron_lm_tp_degree", "2", "--megatron_lm_sequence_parallelism", "true",
                         "--megatron_lm_no_load_optim", "true", "train.py"});
  given.file = acc::test::file({{"megatron_lm_recompute_activations", true}});
  CHECK(acc::launcher::megatron_environment(acc::launcher::Settings(given)) ==
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
