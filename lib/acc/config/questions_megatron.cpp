// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool chosen(const Answers& answers) {
  return answers.type() == "MEGATRON_LM";
}

}  // namespace

std::vector<Question> megatron_questions() {
  using enum QuestionKind;
  return {
      {.name = "megatron",
       .prompt = "Use Megatron-LM?",
       .otherwise = "no",
       .help = "Megatron-LM trains large language models with tensor, pipeline and sequence parallelism. It "
               "has to be installed where the job runs.",
       .choices = yes_makes("distributed_type", "MEGATRON_LM"),
       .asked = [](const Answers& a) { return a.type() == "MULTI_GPU"; }},
      {.name = "megatron_lm_tp_degree",
       .prompt = "Degree of tensor parallelism?",
       .kind = integer,
       .otherwise = "1",
       .key = "megatron_lm_config.megatron_lm_tp_degree",
       .asked = chosen},
      {.name = "megatron_lm_sequence_parallelism",
       .prompt = "Use sequence parallelism?",
       .otherwise = "yes",
       .key = "megatron_lm_config.megatron_lm_sequence_parallelism",
       .asked = [](const Answers& a) { return a.number("megatron_lm_tp_degree") > 1; }},
      {.name = "megatron_lm_pp_degree",
       .prompt = "Degree of pipeline parallelism?",
       .kind = integer,
       .otherwise = "1",
       .key = "megatron_lm_config.megatron_lm_pp_degree",
       .asked = chosen},
      {.name = "megatron_lm_num_micro_batches",
       .prompt = "How many micro-batches?",
       .kind = integer,
       .otherwise = "1",
       .key = "megatron_lm_config.megatron_lm_num_micro_batches",
       .asked = [](const Answers& a) { return a.number("megatron_lm_pp_degree") > 1; }},
      {.name = "megatron_lm_recompute_activations",
       .prompt = "Recompute activations to save memory?",
       .otherwise = "yes",
       .key = "megatron_lm_config.megatron_lm_recompute_activations",
       .asked = chosen},
      {.name = "megatron_lm_use_distributed_optimizer",
       .prompt = "Shard the optimizer's state over the data parallel ranks?",
       .otherwise = "yes",
       .key = "megatron_lm_config.megatron_lm_use_distributed_optimizer",
       .asked = chosen},
      {.name = "megatron_lm_gradient_clipping",
       .prompt = "Largest norm of the gradients (0: no clipping)?",
       .kind = number,
       .otherwise = "1.0",
       .key = "megatron_lm_config.megatron_lm_gradient_clipping",
       .asked = chosen},
  };
}

}  // namespace acc::launcher
