// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool uses_deepspeed(const Answers& answers) {
  return answers.type() == DistributedType::deepspeed;
}
bool without_file(const Answers& answers) {
  return uses_deepspeed(answers) && !answers.yes("deepspeed_file");
}
bool offloads(const Answers& answers) {
  return without_file(answers) && answers.number("zero_stage") >= 2;
}
bool deepspeed_on_several_machines(const Answers& answers) {
  return uses_deepspeed(answers) && answers.machines() > 1;
}
bool with_hostfile(const Answers& answers) {
  return deepspeed_on_several_machines(answers) && !answers.is("deepspeed_multinode_launcher", "standard");
}

std::optional<std::string> refuse_deepspeed_on_neuron(const Answers& answers, const Value& value) {
  if (value != true || answers.type() != DistributedType::multi_neuron) return std::nullopt;
  return "DeepSpeed does not run on Neuron";
}

std::vector<Choice> stages() {
  std::vector<Choice> choices;
  for (const int stage : {0, 1, 2, 3}) choices.push_back({std::to_string(stage), stage, {}});
  return choices;
}

// ZeRO stages and offloading.
std::vector<Question> zero_questions() {
  using enum QuestionKind;
  return {
      {.name = "zero_stage",
       .prompt = "Which stage of ZeRO?",
       .kind = menu,
       .default_answer = "2",
       .key = "deepspeed_config.zero_stage",
       .choices = stages(),
       .condition = without_file},
      {.name = "offload_optimizer_device",
       .prompt = "Where to offload the optimizer's state?",
       .kind = menu,
       .default_answer = "none",
       .key = "deepspeed_config.offload_optimizer_device",
       .choices = words({"none", "cpu", "nvme"}),
       .condition = offloads},
      {.name = "offload_param_device",
       .prompt = "Where to offload the parameters?",
       .kind = menu,
       .default_answer = "none",
       .key = "deepspeed_config.offload_param_device",
       .choices = words({"none", "cpu", "nvme"}),
       .condition = offloads},
      {.name = "offload_param_nvme_path",
       .prompt = "NVMe path for the parameters?",
       .kind = text,
       .default_answer = "/nvme",
       .key = "deepspeed_config.offload_param_nvme_path",
       .condition = [](const Answers& a) { return a.is("offload_param_device", "nvme"); }},
      {.name = "offload_optimizer_nvme_path",
       .prompt = "NVMe path for the optimizer's state?",
       .kind = text,
       .default_answer = "/nvme",
       .key = "deepspeed_config.offload_optimizer_nvme_path",
       .condition = [](const Answers& a) { return a.is("offload_optimizer_device", "nvme"); }},
      {.name = "deepspeed_gradient_accumulation_steps",
       .prompt = "How many gradient accumulation steps does the script pass?",
       .kind = integer,
       .default_answer = "1",
       .key = "deepspeed_config.gradient_accumulation_steps",
       .condition = without_file},
      {.name = "deepspeed_clipping",
       .prompt = "Clip gradients?",
       .default_answer = "no",
       .help = "Gradients whose norm is too large are scaled down before each step.",
       .condition = without_file},
      {.name = "deepspeed_gradient_clipping",
       .prompt = "Largest norm of the gradients?",
       .kind = number,
       .default_answer = "1.0",
       .key = "deepspeed_config.gradient_clipping",
       .condition = [](const Answers& a) { return a.yes("deepspeed_clipping"); }},
      {.name = "zero3_save_16bit_model",
       .prompt = "Save 16-bit weights with ZeRO stage 3?",
       .default_answer = "no",
       .key = "deepspeed_config.zero3_save_16bit_model",
       .condition = [](const Answers& a) { return without_file(a) && a.number("zero_stage") == 3; }},
  };
}

std::vector<Question> deepspeed_machine_questions() {
  using enum QuestionKind;
  return {
      {.name = "deepspeed_multinode_launcher",
       .prompt = "Which of DeepSpeed's multi-node launchers?",
       .kind = menu,
       .default_answer = "pdsh",
       .key = "deepspeed_config.deepspeed_multinode_launcher",
       .choices = words({"pdsh", "standard", "openmpi", "mvapich", "mpich", "nossh", "slurm"}),
       .condition = deepspeed_on_several_machines},
      {.name = "deepspeed_hostfile",
       .prompt = "Path of DeepSpeed's hostfile?",
       .kind = text,
       .example = "/job/hostfile",
       .key = "deepspeed_config.deepspeed_hostfile",
       .condition = with_hostfile},
      {.name = "deepspeed_excludes",
       .prompt = "Leave out some of the hostfile's devices?",
       .default_answer = "no",
       .help = "Hosts or single devices of the hostfile that the job does not use.",
       .condition = with_hostfile},
      {.name = "deepspeed_exclusion_filter",
       .prompt = "Exclusion filter?",
       .kind = text,
       .example = "worker-1@worker-2:0,1",
       .key = "deepspeed_config.deepspeed_exclusion_filter",
       .condition = [](const Answers& a) { return a.yes("deepspeed_excludes"); }},
      {.name = "deepspeed_includes",
       .prompt = "Use only some of the hostfile's devices?",
       .default_answer = "no",
       .help = "Hosts or single devices of the hostfile that alone the job uses.",
       .condition = with_hostfile},
      {.name = "deepspeed_inclusion_filter",
       .prompt = "Inclusion filter?",
       .kind = text,
       .example = "worker-1@worker-2:0,1",
       .key = "deepspeed_config.deepspeed_inclusion_filter",
       .condition = [](const Answers& a) { return a.yes("deepspeed_includes"); }},
  };
}

}  // namespace

std::vector<Question> deepspeed_questions() {
  using enum QuestionKind;
  std::vector<Question> all = {
      {.name = "deepspeed",
       .prompt = "Use DeepSpeed?",
       .default_answer = "no",
       .help = "DeepSpeed shards optimizer, gradients and parameters over the processes (ZeRO) and offloads "
               "them to CPU or NVMe. It has to be installed where the job runs.",
       .choices = yes_makes("distributed_type", word_of(DistributedType::deepspeed)),
       .condition =
           [](const Answers& a) { return a.type() == DistributedType::no || a.is_multi_accelerator(); },
       .refuse = refuse_deepspeed_on_neuron},
      {.name = "deepspeed_file",
       .prompt = "Is there a DeepSpeed JSON file?",
       .default_answer = "no",
       .help =
           "DeepSpeed's own config file sets ZeRO, offloading and precision, so acc does not ask for them.",
       .condition = uses_deepspeed},
      {.name = "deepspeed_config_file",
       .prompt = "Path of the DeepSpeed JSON file?",
       .kind = text,
       .default_answer = "none",
       .key = "deepspeed_config.deepspeed_config_file",
       .condition = [](const Answers& a) { return a.yes("deepspeed_file"); }},
  };
  for (Question& question : zero_questions()) all.push_back(std::move(question));
  all.push_back({.name = "zero3_init_flag",
                 .prompt = "Build the model in shards (deepspeed.zero.Init, ZeRO stage 3)?",
                 .default_answer = "no",
                 .key = "deepspeed_config.zero3_init_flag",
                 .condition = uses_deepspeed});
  all.push_back(
      {.name = "deepspeed_moe",
       .prompt = "Is it a mixture of experts?",
       .default_answer = "no",
       .help = "Its layers of experts are named to DeepSpeed, which keeps each of them whole (ZeRO stage 3).",
       .condition = uses_deepspeed});
  all.push_back({.name = "deepspeed_moe_layer_cls_names",
                 .prompt = "Names of the layer classes with experts, separated by commas?",
                 .kind = text,
                 .example = "MixtralSparseMoeBlock",
                 .key = "deepspeed_config.deepspeed_moe_layer_cls_names",
                 .condition = [](const Answers& a) { return a.yes("deepspeed_moe"); }});
  for (Question& question : deepspeed_machine_questions()) all.push_back(std::move(question));
  return all;
}

namespace {

bool uses_fsdp(const Answers& answers) {
  return answers.type() == DistributedType::fsdp;
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

std::optional<std::string> refuse_fsdp_on_neuron(const Answers& answers, const Value& value) {
  if (value != true || answers.type() != DistributedType::multi_neuron) return std::nullopt;
  return "FSDP does not run on Neuron";
}

std::vector<Choice> state_dict_types(const Answers& answers) {
  return version_1(answers) ? words({"FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"})
                            : words({"SHARDED_STATE_DICT", "FULL_STATE_DICT"});
}

// In version 1 the weights that rank 0 loaded must be broadcast.
std::vector<Choice> efficient_loading(const Answers& answers) {
  if (!version_1(answers)) return {};
  return yes_makes("fsdp_config.fsdp_sync_module_states", true);
}

// How the model is sharded.
std::vector<Question> fsdp_sharding_questions() {
  using enum QuestionKind;
  return {
      {.name = "fsdp",
       .prompt = "Use FullyShardedDataParallel (FSDP)?",
       .default_answer = "no",
       .help = "PyTorch's FSDP shards parameters, gradients and optimizer states over the processes, for "
               "models that one device cannot train.",
       .choices = yes_makes("distributed_type", word_of(DistributedType::fsdp)),
       .condition = [](const Answers& a) { return a.is_multi_accelerator(); },
       .refuse = refuse_fsdp_on_neuron},
      {.name = "fsdp_version",
       .prompt = "Which version of FSDP?",
       .kind = menu,
       .default_answer = "2",
       .key = "fsdp_config.fsdp_version",
       .choices = {{"1", 1, {}}, {"2", 2, {}}},
       .condition = uses_fsdp},
      {.name = "fsdp_sharding_strategy",
       .prompt = "Which sharding strategy?",
       .kind = menu,
       .default_answer = "FULL_SHARD",
       .key = "fsdp_config.fsdp_reshard_after_forward",
       .choices = words({"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"}),
       .condition = version_1},
      {.name = "fsdp_reshard_after_forward",
       .prompt = "Shard the parameters again after the forward pass?",
       .default_answer = "yes",
       .key = "fsdp_config.fsdp_reshard_after_forward",
       .condition = version_2},
      {.name = "fsdp_offload_params",
       .prompt = "Offload parameters and gradients to the CPU?",
       .default_answer = "no",
       .key = "fsdp_config.fsdp_offload_params",
       .condition = uses_fsdp},
      {.name = "fsdp_auto_wrap_policy",
       .prompt = "Which policy wraps the layers?",
       .kind = menu,
       .default_answer = "TRANSFORMER_BASED_WRAP",
       .key = "fsdp_config.fsdp_auto_wrap_policy",
       .choices = words({"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}),
       .condition = uses_fsdp},
      {.name = "fsdp_model_knows_layers",
       .prompt = "Take the model's own list of layers not to split?",
       .default_answer = "no",
       .help = "Models of transformers name the layers that are wrapped as a whole (_no_split_modules).",
       .condition = [](const Answers& a) { return a.is("fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"); }},
      {.name = "fsdp_transformer_layer_cls_to_wrap",
       .prompt = "Names of the layer classes to wrap, separated by commas?",
       .kind = text,
       .example = "LlamaDecoderLayer",
       .key = "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
       .condition = [](const Answers& a) { return a.is("fsdp_model_knows_layers", false); }},
      {.name = "fsdp_min_num_params",
       .prompt = "Smallest number of parameters of a wrapped layer?",
       .kind = integer,
       .default_answer = "100000000",
       .key = "fsdp_config.fsdp_min_num_params",
       .condition = [](const Answers& a) { return a.is("fsdp_auto_wrap_policy", "SIZE_BASED_WRAP"); }},
  };
}

std::vector<Question> fsdp_run_questions() {
  using enum QuestionKind;
  return {
      {.name = "fsdp_backward_prefetch",
       .prompt = "When to prefetch in the backward pass?",
       .kind = menu,
       .default_answer = "BACKWARD_PRE",
       .key = "fsdp_config.fsdp_backward_prefetch",
       .choices = words({"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}),
       .condition = version_1},
      {.name = "fsdp_state_dict_type",
       .prompt = "Which kind of checkpoint?",
       .kind = menu,
       .key = "fsdp_config.fsdp_state_dict_type",
       .condition = uses_fsdp,
       .choices_for = state_dict_types,
       .default_answer_for = [](const Answers& a) { return state_dict_types(a).front().label; }},
      {.name = "fsdp_forward_prefetch",
       .prompt = "Prefetch in the forward pass?",
       .default_answer = "no",
       .key = "fsdp_config.fsdp_forward_prefetch",
       .condition = version_1},
      {.name = "fsdp_use_orig_params",
       .prompt = "Keep the original parameters (use_orig_params)?",
       .default_answer = "yes",
       .key = "fsdp_config.fsdp_use_orig_params",
       .condition = version_1},
      {.name = "fsdp_cpu_ram_efficient_loading",
       .prompt = "Load the checkpoint on rank 0 only, to save memory?",
       .default_answer = "yes",
       .key = "fsdp_config.fsdp_cpu_ram_efficient_loading",
       .condition = uses_fsdp,
       .choices_for = efficient_loading},
      {.name = "fsdp_sync_module_states",
       .prompt = "Send the parameters of rank 0 to all at the start?",
       .default_answer = "yes",
       .key = "fsdp_config.fsdp_sync_module_states",
       .condition =
           [](const Answers& a) { return version_1(a) && !a.yes("fsdp_cpu_ram_efficient_loading"); }},
      {.name = "fsdp_activation_checkpointing",
       .prompt = "Use activation checkpointing?",
       .default_answer = "no",
       .key = "fsdp_config.fsdp_activation_checkpointing",
       .condition = uses_fsdp},
  };
}

std::vector<Question> parallelism_questions() {
  using enum QuestionKind;
  return {
      {.name = "parallelism",
       .prompt = "Combine several kinds of parallelism?",
       .default_answer = "no",
       .help = "Data, tensor and context parallelism in one job; the product of their sizes is the number of "
               "processes.",
       .condition = version_2},
      {.name = "parallelism_config_dp_replicate_size",
       .prompt = "Size of data parallel replication?",
       .kind = integer,
       .default_answer = "1",
       .key = "parallelism_config.parallelism_config_dp_replicate_size",
       .condition = parallel},
      {.name = "parallelism_config_dp_shard_size",
       .prompt = "Size of the FSDP shards?",
       .kind = integer,
       .default_answer = "1",
       .key = "parallelism_config.parallelism_config_dp_shard_size",
       .condition = parallel},
      {.name = "parallelism_config_tp_size",
       .prompt = "Size of tensor parallelism?",
       .kind = integer,
       .default_answer = "1",
       .key = "parallelism_config.parallelism_config_tp_size",
       .condition = parallel},
      {.name = "parallelism_config_cp_size",
       .prompt = "Size of context parallelism?",
       .kind = integer,
       .default_answer = "1",
       .key = "parallelism_config.parallelism_config_cp_size",
       .condition = parallel},
      {.name = "parallelism_config_cp_comm_strategy",
       .prompt = "How do the parts of the context reach each other?",
       .kind = menu,
       .default_answer = "allgather",
       .key = "parallelism_config.parallelism_config_cp_comm_strategy",
       .choices = words({"allgather", "alltoall"}),
       .condition = [](const Answers& a) { return a.number("parallelism_config_cp_size") > 1; }},
  };
}

}  // namespace

std::vector<Question> fsdp_questions() {
  std::vector<Question> questions = fsdp_sharding_questions();
  for (const auto& part : {fsdp_run_questions, parallelism_questions}) {
    for (Question& question : part()) questions.push_back(std::move(question));
  }
  return questions;
}

namespace {

bool uses_megatron(const Answers& answers) {
  return answers.type() == DistributedType::megatron_lm;
}

}  // namespace

std::vector<Question> megatron_questions() {
  using enum QuestionKind;
  return {
      {.name = "megatron",
       .prompt = "Use Megatron-LM?",
       .default_answer = "no",
       .help = "Megatron-LM trains large language models with tensor, pipeline and sequence parallelism. It "
               "has to be installed where the job runs.",
       .choices = yes_makes("distributed_type", word_of(DistributedType::megatron_lm)),
       .condition = [](const Answers& a) { return a.type() == DistributedType::multi_gpu; }},
      {.name = "megatron_lm_tp_degree",
       .prompt = "Degree of tensor parallelism?",
       .kind = integer,
       .default_answer = "1",
       .key = "megatron_lm_config.megatron_lm_tp_degree",
       .condition = uses_megatron},
      {.name = "megatron_lm_sequence_parallelism",
       .prompt = "Use sequence parallelism?",
       .default_answer = "yes",
       .key = "megatron_lm_config.megatron_lm_sequence_parallelism",
       .condition = [](const Answers& a) { return a.number("megatron_lm_tp_degree") > 1; }},
      {.name = "megatron_lm_pp_degree",
       .prompt = "Degree of pipeline parallelism?",
       .kind = integer,
       .default_answer = "1",
       .key = "megatron_lm_config.megatron_lm_pp_degree",
       .condition = uses_megatron},
      {.name = "megatron_lm_num_micro_batches",
       .prompt = "How many micro-batches?",
       .kind = integer,
       .default_answer = "1",
       .key = "megatron_lm_config.megatron_lm_num_micro_batches",
       .condition = [](const Answers& a) { return a.number("megatron_lm_pp_degree") > 1; }},
      {.name = "megatron_lm_recompute_activations",
       .prompt = "Recompute activations to save memory?",
       .default_answer = "yes",
       .key = "megatron_lm_config.megatron_lm_recompute_activations",
       .condition = uses_megatron},
      {.name = "megatron_lm_use_distributed_optimizer",
       .prompt = "Shard the optimizer's state over the data parallel ranks?",
       .default_answer = "yes",
       .key = "megatron_lm_config.megatron_lm_use_distributed_optimizer",
       .condition = uses_megatron},
      {.name = "megatron_lm_gradient_clipping",
       .prompt = "Largest norm of the gradients (0: no clipping)?",
       .kind = number,
       .default_answer = "1.0",
       .key = "megatron_lm_config.megatron_lm_gradient_clipping",
       .condition = uses_megatron},
  };
}

}  // namespace acc::launcher
