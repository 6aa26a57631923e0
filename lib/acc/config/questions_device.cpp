// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool one_machine_of_gpus(const Answers& answers) {
  return answers.type() == "MULTI_GPU" && answers.machines() == 1;
}

// One process for each GPU of this machine, where the answers speak of GPUs at all.
std::string likely_processes(const Answers& answers) {
  if (one_machine_of_gpus(answers)) return std::to_string(std::max(2, answers.gpus));
  return std::to_string(answers.machines());
}

std::optional<std::string> refuse_processes(const Answers& answers, const Value& value) {
  const auto processes = value.get<std::int64_t>();
  if (one_machine_of_gpus(answers) && processes == 1)
    return "multi-GPU training on one machine needs two processes or more";
  if (processes % answers.machines() != 0)
    return fmt::format("{} processes cannot be shared evenly by {} machines", processes, answers.machines());
  return std::nullopt;
}

bool has_devices(const Answers& answers) {
  return (answers.type() == "NO" || answers.is_multi_accelerator()) && !answers.on_cpu();
}

}  // namespace

std::vector<Question> device_questions() {
  using enum QuestionKind;
  return {
      {.name = "num_processes",
       .prompt = "How many processes in all, over all machines (one for each device)?",
       .kind = integer,
       .key = "num_processes",
       .asked = [](const Answers& a) { return a.type() != "NO"; },
       .otherwise_for = likely_processes,
       .refuse = refuse_processes},
      {.name = "gpu_ids",
       .prompt = "Which devices of this machine: all, or numbers separated by commas?",
       .kind = text,
       .otherwise = "all",
       .key = "gpu_ids",
       .asked = has_devices},
      {.name = "enable_cpu_affinity",
       .prompt = "Bind each process to the CPUs near its GPU (NUMA)?",
       .otherwise = "no",
       .key = "enable_cpu_affinity",
       .asked =
           [](const Answers& a) { return (a.type() == "NO" || a.type() == "MULTI_GPU") && !a.on_cpu(); }},
  };
}

}  // namespace acc::launcher
