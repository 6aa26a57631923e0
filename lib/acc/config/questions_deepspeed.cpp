// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool chosen(const Answers& answers) {
  return answers.type() == "DEEPSPEED";
}
bool without_file(const Answers& answers) {
  return chosen(answers) && !answers.yes("deepspeed_file");
}
bool offloads(const Answers& answers) {
  return without_file(answers) && answers.number("zero_stage") >= 2;
}
bool several_machines(const Answers& answers) {
  return chosen(answers) && answers.machines() > 1;
}
bool with_hostfile(const Answers& answers) {
  return several_machines(answers) && !answers.is("deepspeed_multinode_launcher", "standard");
}

std::optional<std::string> refuse_neuron(const Answers& answers, const Value& value) {
  if (value != true || answers.type() != "MULTI_NEURON") return std::nullopt;
  return "DeepSpeed does not run on Neuron";
}

std::vector<Choice> stages() {
  std::vector<Choice> choices;
  for (const int stage : {0, 1, 2, 3}) choices.push_back({std::to_string(stage), stage, {}});
  return choices;
}

// The stages and where ZeRO puts what does not fit.
std::vector<Question> zero_questions() {
  using enum QuestionKind;
  return {
      {.name = "zero_stage",
       .prompt = "Which stage of ZeRO?",
       .kind = menu,
       .otherwise = "2",
       .key = "deepspeed_config.zero_stage",
       .choices = stages(),
       .asked = without_file},
      {.name = "offload_optimizer_device",
       .prompt = "Where to offload the optimizer's state?",
       .kind = menu,
       .otherwise = "none",
       .key = "deepspeed_config.offload_optimizer_device",
       .choices = words({"none", "cpu", "nvme"}),
       .asked = offloads},
      {.name = "offload_param_device",
       .prompt = "Where to offload the parameters?",
       .kind = menu,
       .otherwise = "none",
       .key = "deepspeed_config.offload_param_device",
       .choices = words({"none", "cpu", "nvme"}),
       .asked = offloads},
      {.name = "offload_param_nvme_path",
       .prompt = "NVMe path for the parameters?",
       .kind = text,
       .otherwise = "/nvme",
       .key = "deepspeed_config.offload_param_nvme_path",
       .asked = [](const Answers& a) { return a.is("offload_param_device", "nvme"); }},
      {.name = "offload_optimizer_nvme_path",
       .prompt = "NVMe path for the optimizer's state?",
       .kind = text,
       .otherwise = "/nvme",
       .key = "deepspeed_config.offload_optimizer_nvme_path",
       .asked = [](const Answers& a) { return a.is("offload_optimizer_device", "nvme"); }},
      {.name = "deepspeed_gradient_accumulation_steps",
       .prompt = "How many gradient accumulation steps does the script pass?",
       .kind = integer,
       .otherwise = "1",
       .key = "deepspeed_config.gradient_accumulation_steps",
       .asked = without_file},
      {.name = "deepspeed_clipping",
       .prompt = "Clip gradients?",
       .otherwise = "no",
       .help = "Gradients whose norm is too large are scaled down before each step.",
       .asked = without_file},
      {.name = "deepspeed_gradient_clipping",
       .prompt = "Largest norm of the gradients?",
       .kind = number,
       .otherwise = "1.0",
       .key = "deepspeed_config.gradient_clipping",
       .asked = [](const Answers& a) { return a.yes("deepspeed_clipping"); }},
      {.name = "zero3_save_16bit_model",
       .prompt = "Save 16-bit weights with ZeRO stage 3?",
       .otherwise = "no",
       .key = "deepspeed_config.zero3_save_16bit_model",
       .asked = [](const Answers& a) { return without_file(a) && a.number("zero_stage") == 3; }},
  };
}

std::vector<Question> machine_questions() {
  using enum QuestionKind;
  return {
      {.name = "deepspeed_multinode_launcher",
       .prompt = "Which of DeepSpeed's multi-node launchers?",
       .kind = menu,
       .otherwise = "pdsh",
       .key = "deepspeed_config.deepspeed_multinode_launcher",
       .choices = words({"pdsh", "standard", "openmpi", "mvapich", "mpich", "nossh", "slurm"}),
       .asked = several_machines},
      {.name = "deepspeed_hostfile",
       .prompt = "Path of DeepSpeed's hostfile?",
       .kind = text,
       .key = "deepspeed_config.deepspeed_hostfile",
       .asked = with_hostfile},
      {.name = "deepspeed_excludes",
       .prompt = "Leave out some of the hostfile's devices?",
       .otherwise = "no",
       .help = "Hosts or single devices of the hostfile that the job does not use.",
       .asked = with_hostfile},
      {.name = "deepspeed_exclusion_filter",
       .prompt = "Exclusion filter?",
       .kind = text,
       .key = "deepspeed_config.deepspeed_exclusion_filter",
       .asked = [](const Answers& a) { return a.yes("deepspeed_excludes"); }},
      {.name = "deepspeed_includes",
       .prompt = "Use only some of the hostfile's devices?",
       .otherwise = "no",
       .help = "Hosts or single devices of the hostfile that alone the job uses.",
       .asked = with_hostfile},
      {.name = "deepspeed_inclusion_filter",
       .prompt = "Inclusion filter?",
       .kind = text,
       .key = "deepspeed_config.deepspeed_inclusion_filter",
       .asked = [](const Answers& a) { return a.yes("deepspeed_includes"); }},
  };
}

}  // namespace

std::vector<Question> deepspeed_questions() {
  using enum QuestionKind;
  std::vector<Question> all = {
      {.name = "deepspeed",
       .prompt = "Use DeepSpeed?",
       .otherwise = "no",
       .help = "DeepSpeed shards optimizer, gradients and parameters over the processes (ZeRO) and offloads "
               "them to CPU or NVMe. It has to be installed where the job runs.",
       .choices = yes_makes("distributed_type", "DEEPSPEED"),
       .asked = [](const Answers& a) { return a.type() == "NO" || a.is_multi_accelerator(); },
       .refuse = refuse_neuron},
      {.name = "deepspeed_file",
       .prompt = "Is there a DeepSpeed JSON file?",
       .otherwise = "no",
       .help = "A file of DeepSpeed's own says all about ZeRO, offloading and precision; none of that is "
               "asked for then.",
       .asked = chosen},
      {.name = "deepspeed_config_file",
       .prompt = "Path of the DeepSpeed JSON file?",
       .kind = text,
       .otherwise = "none",
       .key = "deepspeed_config.deepspeed_config_file",
       .asked = [](const Answers& a) { return a.yes("deepspeed_file"); }},
  };
  for (Question& question : zero_questions()) all.push_back(std::move(question));
  all.push_back({.name = "zero3_init_flag",
                 .prompt = "Build the model in shards (deepspeed.zero.Init, ZeRO stage 3)?",
                 .otherwise = "no",
                 .key = "deepspeed_config.zero3_init_flag",
                 .asked = chosen});
  all.push_back(
      {.name = "deepspeed_moe",
       .prompt = "Is it a mixture of experts?",
       .otherwise = "no",
       .help = "Its layers of experts are named to DeepSpeed, which keeps each of them whole (ZeRO stage 3).",
       .asked = chosen});
  all.push_back({.name = "deepspeed_moe_layer_cls_names",
                 .prompt = "Names of the layer classes with experts, separated by commas?",
                 .kind = text,
                 .key = "deepspeed_config.deepspeed_moe_layer_cls_names",
                 .asked = [](const Answers& a) { return a.yes("deepspeed_moe"); }});
  for (Question& question : machine_questions()) all.push_back(std::move(question));
  return all;
}

}  // namespace acc::launcher
