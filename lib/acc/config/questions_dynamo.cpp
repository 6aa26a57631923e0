// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

// Files hold back ends in upper case; people type them in lower case.
std::vector<Choice> backends() {
  std::vector<Choice> choices = allowed_words("dynamo_backend", "NO");
  for (Choice& choice : choices) choice.label = to_lower(choice.label);
  return choices;
}

bool customised(const Answers& answers) {
  return answers.yes("dynamo_custom");
}

}  // namespace

std::vector<Question> dynamo_questions() {
  using enum QuestionKind;
  return {
      {.name = "dynamo",
       .prompt = "Compile the model with torch.compile (dynamo)?",
       .otherwise = "no",
       .help = "torch.compile makes faster code of the model in its first steps.",
       .of = {}},
      {.name = "dynamo_backend",
       .prompt = "Which back end of dynamo?",
       .kind = menu,
       .otherwise = "inductor",
       .key = "dynamo_config.dynamo_backend",
       .choices = backends(),
       .asked = [](const Answers& a) { return a.yes("dynamo"); },
       .of = {}},
      {.name = "dynamo_custom",
       .prompt = "Change the defaults of torch.compile?",
       .otherwise = "no",
       .help = "Asks for the mode, graph breaks, dynamic shapes and regional compilation.",
       .asked = [](const Answers& a) { return a.yes("dynamo"); },
       .of = {}},
      {.name = "dynamo_mode",
       .prompt = "Which mode?",
       .kind = menu,
       .otherwise = "default",
       .key = "dynamo_config.dynamo_mode",
       .choices = allowed_words("dynamo_mode"),
       .asked = customised,
       .of = {}},
      {.name = "dynamo_use_fullgraph",
       .prompt = "Refuse graph breaks (fullgraph)?",
       .otherwise = "no",
       .key = "dynamo_config.dynamo_use_fullgraph",
       .asked = customised,
       .of = {}},
      {.name = "dynamo_use_dynamic",
       .prompt = "Compile for dynamic shapes?",
       .otherwise = "no",
       .key = "dynamo_config.dynamo_use_dynamic",
       .asked = customised,
       .of = {}},
      {.name = "dynamo_use_regional_compilation",
       .prompt = "Compile repeated blocks once (regional compilation)?",
       .otherwise = "no",
       .key = "dynamo_config.dynamo_use_regional_compilation",
       .asked = customised,
       .of = {}},
  };
}

}  // namespace acc::launcher
