// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

bool chosen(const Answers& answers) {
  return answers.type() == "XLA";
}
bool pod(const Answers& answers) {
  return answers.yes("tpu_use_cluster");
}
bool commands(const Answers& answers) {
  return answers.is("tpu_script", false);
}

}  // namespace

std::vector<Question> tpu_questions() {
  using enum QuestionKind;
  return {
      {.name = "main_training_function",
       .prompt = "Name of the function in the script that trains?",
       .kind = text,
       .otherwise = "main",
       .key = "main_training_function",
       .asked = chosen},
      {.name = "tpu_use_cluster",
       .prompt = "Is it a TPU pod?",
       .otherwise = "no",
       .key = "tpu_use_cluster",
       .asked = chosen},
      {.name = "tpu_name", .prompt = "Name of the pod?", .kind = text, .key = "tpu_name", .asked = pod},
      {.name = "tpu_zone", .prompt = "Zone of the pod?", .kind = text, .key = "tpu_zone", .asked = pod},
      {.name = "tpu_use_sudo",
       .prompt = "Run commands on the pod with sudo?",
       .otherwise = "no",
       .key = "tpu_use_sudo",
       .asked = pod},
      {.name = "tpu_startup",
       .prompt = "Run commands on each machine of the pod at the start?",
       .otherwise = "no",
       .help = "They run when the pod is set up by `acc tpu-config`.",
       .asked = pod},
      {.name = "tpu_script",
       .prompt = "Are they in a file?",
       .otherwise = "no",
       .help = "The lines of a file, or commands that are typed here.",
       .asked = [](const Answers& a) { return a.yes("tpu_startup"); }},
      {.name = "command_file",
       .prompt = "Path of the file?",
       .kind = path,
       .key = "command_file",
       .asked = [](const Answers& a) { return a.yes("tpu_script"); }},
      {.name = "commands",
       .prompt = "Which command?",
       .kind = text,
       .key = "commands",
       .appends = true,
       .asked = commands},
      {.name = "another_command",
       .prompt = "Another command?",
       .otherwise = "no",
       .help = "Commands run in the order in which they are typed.",
       .asked = commands,
       .back_to = "commands"},
      {.name = "tpu_vm",
       .prompt = "Names of the pod's machines, separated by commas (none: all)?",
       .kind = list,
       .key = "tpu_vm",
       .asked = pod},
      {.name = "tpu_env",
       .prompt = "Variables for the pod's machines, NAME=VALUE separated by commas?",
       .kind = list,
       .key = "tpu_env",
       .asked = pod},
  };
}

}  // namespace acc::launcher
