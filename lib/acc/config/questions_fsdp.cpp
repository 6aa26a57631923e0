// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool chosen(const Answers& answers) {
  return answers.type() == "FSDP";
}
bool version_1(const Answers& answers) {
  return answers.is("fsdp_version", 1);
}
bool version_2(const Answers& answers) {
  return answers.is("fsdp_version", 2);
}
bool parallel(const Answers& answers) {
  return answers.yes("parallelism");
}

std::optional<std::string> refuse_neuron(const Answers& answers, const Value& value) {
  if (value != true || answers.type() != "MULTI_NEURON") return std::nullopt;
  return "FSDP does not run on Neuron";
}

std::vector<Choice> state_dict_types(const Answers& answers) {
  return version_1(answers) ? words({"FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"})
                            : words({"SHARDED_STATE_DICT", "FULL_STATE_DICT"});
}

// Version 1 has to send to all what only rank 0 loaded.
std::vector<Choice> efficient_loading(const Answers& answers) {
  if (!version_1(answers)) return {};
  return yes_makes("fsdp_config.fsdp_sync_module_states", true);
}

// How the model is cut into shards.
std::vector<Question> sharding_questions() {
  using enum QuestionKind;
  return {
      {.name = "fsdp",
       .prompt = "Use FullyShardedDataParallel (FSDP)?",
       .otherwise = "no",
       .help = "PyTorch's FSDP shards parameters, gradients and optimizer states over the processes, for "
               "models that one device cannot train.",
       .choices = yes_makes("distributed_type", "FSDP"),
       .asked = [](const Answers& a) { return a.is_multi_accelerator(); },
       .refuse = refuse_neuron},
      {.name = "fsdp_version",
       .prompt = "Which version of FSDP?",
       .kind = menu,
       .otherwise = "2",
       .key = "fsdp_config.fsdp_version",
       .choices = {{"1", 1, {}}, {"2", 2, {}}},
       .asked = chosen},
      {.name = "fsdp_sharding_strategy",
       .prompt = "Which sharding strategy?",
       .kind = menu,
       .otherwise = "FULL_SHARD",
       .key = "fsdp_config.fsdp_reshard_after_forward",
       .choices = words({"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"}),
       .asked = version_1},
      {.name = "fsdp_reshard_after_forward",
       .prompt = "Shard the parameters again after the forward pass?",
       .otherwise = "yes",
       .key = "fsdp_config.fsdp_reshard_after_forward",
       .asked = version_2},
      {.name = "fsdp_offload_params",
       .prompt = "Offload parameters and gradients to the CPU?",
       .otherwise = "no",
       .key = "fsdp_config.fsdp_offload_params",
       .asked = chosen},
      {.name = "fsdp_auto_wrap_policy",
       .prompt = "Which policy wraps the layers?",
       .kind = menu,
       .otherwise = "TRANSFORMER_BASED_WRAP",
       .key = "fsdp_config.fsdp_auto_wrap_policy",
       .choices = words({"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}),
       .asked = chosen},
      {.name = "fsdp_model_knows_layers",
       .prompt = "Take the model's own list of layers not to split?",
       .otherwise = "no",
       .help = "Models of transformers name the layers that are wrapped as a whole (_no_split_modules).",
       .asked = [](const Answers& a) { return a.is("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"); }},
      {.name = "fsdp_transformer_layer_cls_to_wrap",
       .prompt = "Names of the layer classes to wrap, separated by commas?",
       .kind = text,
       .key = "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
       .asked = [](const Answers& a) { return a.is("fsdp_model_knows_layers", false); }},
      {.name = "fsdp_min_num_params",
       .prompt = "Smallest number of parameters of a wrapped layer?",
       .kind = integer,
       .otherwise = "100000000",
       .key = "fsdp_config.fsdp_min_num_params",
       .asked = [](const Answers& a) { return a.is("fsdp_auto_wrap_policy", "SIZE_BASED_WRAP"); }},
  };
}

std::vector<Question> run_questions() {
  using enum QuestionKind;
  return {
      {.name = "fsdp_backward_prefetch",
       .prompt = "When to prefetch in the backward pass?",
       .kind = menu,
       .otherwise = "BACKWARD_PRE",
       .key = "fsdp_config.fsdp_backward_prefetch",
       .choices = words({"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}),
       .asked = version_1},
      {.name = "fsdp_state_dict_type",
       .prompt = "Which kind of checkpoint?",
       .kind = menu,
       .key = "fsdp_config.fsdp_state_dict_type",
       .asked = chosen,
       .choices_for = state_dict_types,
       .otherwise_for = [](const Answers& a) { return state_dict_types(a).front().label; }},
      {.name = "fsdp_forward_prefetch",
       .prompt = "Prefetch in the forward pass?",
       .otherwise = "no",
       .key = "fsdp_config.fsdp_forward_prefetch",
       .asked = version_1},
      {.name = "fsdp_use_orig_params",
       .prompt = "Keep the original parameters (use_orig_params)?",
       .otherwise = "yes",
       .key = "fsdp_config.fsdp_use_orig_params",
       .asked = version_1},
      {.name = "fsdp_cpu_ram_efficient_loading",
       .prompt = "Load the checkpoint on rank 0 only, to save memory?",
       .otherwise = "yes",
       .key = "fsdp_config.fsdp_cpu_ram_efficient_loading",
       .asked = chosen,
       .choices_for = efficient_loading},
      {.name = "fsdp_sync_module_states",
       .prompt = "Send the parameters of rank 0 to all at the start?",
       .otherwise = "yes",
       .key = "fsdp_config.fsdp_sync_module_states",
       .asked = [](const Answers& a) { return version_1(a) && !a.yes("fsdp_cpu_ram_efficient_loading"); }},
      {.name = "fsdp_activation_checkpointing",
       .prompt = "Use activation checkpointing?",
       .otherwise = "no",
       .key = "fsdp_config.fsdp_activation_checkpointing",
       .asked = chosen},
  };
}

std::vector<Question> parallelism_questions() {
  using enum QuestionKind;
  return {
      {.name = "parallelism",
       .prompt = "Combine several kinds of parallelism?",
       .otherwise = "no",
       .help = "Data, tensor and context parallelism in one job; the product of their sizes is the number of "
               "processes.",
       .asked = version_2},
      {.name = "parallelism_config_dp_replicate_size",
       .prompt = "Size of data parallel replication?",
       .kind = integer,
       .otherwise = "1",
       .key = "parallelism_config.parallelism_config_dp_replicate_size",
       .asked = parallel},
      {.name = "parallelism_config_dp_shard_size",
       .prompt = "Size of the FSDP shards?",
       .kind = integer,
       .otherwise = "1",
       .key = "parallelism_config.parallelism_config_dp_shard_size",
       .asked = parallel},
      {.name = "parallelism_config_tp_size",
       .prompt = "Size of tensor parallelism?",
       .kind = integer,
       .otherwise = "1",
       .key = "parallelism_config.parallelism_config_tp_size",
       .asked = parallel},
      {.name = "parallelism_config_cp_size",
       .prompt = "Size of context parallelism?",
       .kind = integer,
       .otherwise = "1",
       .key = "parallelism_config.parallelism_config_cp_size",
       .asked = parallel},
      {.name = "parallelism_config_cp_comm_strategy",
       .prompt = "How do the parts of the context reach each other?",
       .kind = menu,
       .otherwise = "allgather",
       .key = "parallelism_config.parallelism_config_cp_comm_strategy",
       .choices = words({"allgather", "alltoall"}),
       .asked = [](const Answers& a) { return a.number("parallelism_config_cp_size") > 1; }},
  };
}

}  // namespace

std::vector<Question> fsdp_questions() {
  std::vector<Question> all = sharding_questions();
  for (const auto& part : {run_questions, parallelism_questions}) {
    for (Question& question : part()) all.push_back(std::move(question));
  }
  return all;
}

}  // namespace acc::launcher
