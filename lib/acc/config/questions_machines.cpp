// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "acc/base/host_name.hpp"
#include "acc/base/text.hpp"
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

std::vector<Choice> types() {
  using enum DistributedType;
  return {{"No distributed training", word_of(no), {}},
          {"multi-CPU", word_of(multi_cpu), {{"use_cpu", true}}},
          {"multi-XPU", word_of(multi_xpu), {}},
          {"multi-HPU", word_of(multi_hpu), {}},
          {"multi-GPU", word_of(multi_gpu), {}},
          {"multi-NPU", word_of(multi_npu), {}},
          {"multi-MLU", word_of(multi_mlu), {}},
          {"multi-SDAA", word_of(multi_sdaa), {}},
          {"multi-MUSA", word_of(multi_musa), {}},
          {"multi-NEURON", word_of(multi_neuron), {}},
          {"TPU", word_of(xla), {{"mixed_precision", "no"}}}};
}

std::vector<Choice> machine_ranks(const Answers& answers) {
  std::vector<Choice> choices;
  for (std::int64_t rank = 0; rank < answers.machines(); ++rank)
    choices.push_back({std::to_string(rank), rank, {}});
  return choices;
}

bool several_machines(const Answers& answers) {
  return answers.is_multi() && answers.machines() > 1;
}

// Longer lists of choices are cut.
constexpr std::int64_t kMaxListedRanks = 100;

std::optional<std::string> refuse_rank(const Answers& answers, const Value& value) {
  if (value.get<std::int64_t>() < answers.machines()) return std::nullopt;
  return fmt::format("ranks of {} machines are 0 to {}", answers.machines(), answers.machines() - 1);
}

std::optional<std::string> refuse_backend(const Answers&, const Value& value) {
  const std::vector<std::string> backends = {"static", "c10d", "etcd"};
  const std::string name = value.get<std::string>();
  if (contains(backends, name)) return std::nullopt;
  return fmt::format("'{}' is not one of: {}", shorten(name), join(backends, ", "));
}

std::optional<std::string> refuse_address(const Answers&, const Value& value) {
  const std::string address = value.get<std::string>();
  if (parse_host_name(trim(address))) return std::nullopt;
  return fmt::format("'{}' is not the name or address of a machine; its port is the next question",
                     shorten(address));
}

}  // namespace

std::vector<Question> place_questions() {
  using enum QuestionKind;
  return {
      {.name = "compute_environment",
       .prompt = "Where does the training run?",
       .kind = menu,
       .default_answer = "This machine",
       .key = "compute_environment",
       .choices = {{"This machine", word_of(ComputeEnvironment::local_machine), {}},
                   {"AWS (Amazon SageMaker)", word_of(ComputeEnvironment::amazon_sagemaker), {}}},
       .file_kind = {}},
  };
}

std::vector<Question> training_questions() {
  using enum QuestionKind;
  return {
      {.name = "distributed_type",
       .prompt = "Which kind of training?",
       .kind = menu,
       .default_answer = "No distributed training",
       .key = "distributed_type",
       .choices = types()},
      {.name = "num_machines",
       .prompt = "How many machines?",
       .kind = integer,
       .default_answer = "1",
       .key = "num_machines",
       .condition = [](const Answers& a) { return a.is_multi(); }},
      {.name = "machine_rank",
       .prompt = "Which rank does this machine have?",
       .kind = menu,
       .default_answer = "0",
       .key = "machine_rank",
       .condition = [](const Answers& a) { return several_machines(a) && a.machines() <= kMaxListedRanks; },
       .choices_for = machine_ranks},
      {.name = "machine_rank_number",
       .prompt = "Which rank does this machine have?",
       .kind = integer,
       .default_answer = "0",
       .key = "machine_rank",
       .condition = [](const Answers& a) { return several_machines(a) && a.machines() > kMaxListedRanks; },
       .refuse = refuse_rank},
      {.name = "main_process_ip",
       .prompt = "Address of the machine of rank 0?",
       .kind = text,
       .example = "10.0.0.1",
       .key = "main_process_ip",
       .condition = several_machines,
       .refuse = refuse_address},
      {.name = "main_process_port",
       .prompt = "Port on that machine?",
       .kind = integer,
       .example = "29500",
       .key = "main_process_port",
       .condition = several_machines},
      {.name = "same_network",
       .prompt = "Are all machines in one local network?",
       .default_answer = "yes",
       .key = "same_network",
       .condition = several_machines},
      {.name = "rdzv_backend",
       .prompt = "Rendezvous backend (static, c10d or etcd)?",
       .kind = text,
       .default_answer = "static",
       .key = "rdzv_backend",
       .condition = [](const Answers& a) { return several_machines(a) && a.is("same_network", false); },
       .refuse = refuse_backend},
      {.name = "debug",
       .prompt = "Check distributed operations while training (slower, for debugging)?",
       .default_answer = "no",
       .key = "debug",
       .condition = [](const Answers& a) { return a.is_multi(); }},
      {.name = "use_cpu",
       .prompt = "Train on the CPU only, also where there are GPUs?",
       .default_answer = "no",
       .key = "use_cpu",
       .condition = [](const Answers& a) { return a.type() == DistributedType::no; }},
      {.name = "mpirun",
       .prompt = "Start the workers through mpirun?",
       .default_answer = "no",
       .help = "mpirun starts the workers on the hosts of a file; without it, acc starts those of the "
               "machine that it runs on.",
       .condition = [](const Answers& a) { return a.type() == DistributedType::multi_cpu; }},
      {.name = "mpirun_hostfile",
       .prompt = "Path of the hostfile?",
       .kind = path,
       .default_answer = "~/hostfile",
       .key = "mpirun_config.mpirun_hostfile",
       .condition = [](const Answers& a) { return a.yes("mpirun"); }},
  };
}

namespace {

bool one_machine_of_gpus(const Answers& answers) {
  return answers.type() == DistributedType::multi_gpu && answers.machines() == 1;
}

// One process per GPU if the job uses GPUs, also under DeepSpeed, FSDP and Megatron-LM; other machines are
// taken to be like this one.
std::string likely_processes(const Answers& answers) {
  if (one_machine_of_gpus(answers)) return std::to_string(std::max(2, answers.gpus));
  const int of_each =
      answers.is("distributed_type", word_of(DistributedType::multi_gpu)) ? std::max(1, answers.gpus) : 1;
  return std::to_string(of_each * answers.machines());
}

std::optional<std::string> refuse_processes(const Answers& answers, const Value& value) {
  const auto processes = value.get<std::int64_t>();
  if (one_machine_of_gpus(answers) && processes == 1)
    return "multi-GPU training on one machine needs two processes or more";
  if (processes % answers.machines() != 0)
    return fmt::format("{} processes cannot be divided evenly among {} machines", processes,
                       answers.machines());
  return std::nullopt;
}

bool has_devices(const Answers& answers) {
  return (answers.type() == DistributedType::no || answers.is_multi_accelerator()) && !answers.on_cpu();
}

}  // namespace

std::vector<Question> device_questions() {
  using enum QuestionKind;
  return {
      {.name = "num_processes",
       .prompt = "How many processes in all, over all machines (one for each device)?",
       .kind = integer,
       .key = "num_processes",
       .condition = [](const Answers& a) { return a.type() != DistributedType::no; },
       .default_answer_for = likely_processes,
       .refuse = refuse_processes},
      {.name = "gpu_ids",
       .prompt = "Which devices of this machine: all, or numbers separated by commas?",
       .kind = text,
       .default_answer = "all",
       .key = "gpu_ids",
       .condition = has_devices},
      {.name = "enable_cpu_affinity",
       .prompt = "Bind each process to the CPUs near its GPU (NUMA)?",
       .default_answer = "no",
       .key = "enable_cpu_affinity",
       .condition =
           [](const Answers& a) {
             return (a.type() == DistributedType::no || a.type() == DistributedType::multi_gpu) &&
                    !a.on_cpu();
           }},
  };
}

}  // namespace acc::launcher
