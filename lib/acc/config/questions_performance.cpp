// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

// Config files spell back ends in upper case, the menu in lower case.
std::vector<Choice> backends() {
  std::vector<Choice> choices = allowed_words(key::dynamo_backend, "NO");
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
       .default_answer = "no",
       .help = "torch.compile makes faster code of the model in its first steps.",
       .file_kind = {}},
      {.name = "dynamo_backend",
       .prompt = "Which back end of dynamo?",
       .kind = menu,
       .default_answer = "inductor",
       .key = "dynamo_config.dynamo_backend",
       .choices = backends(),
       .condition = [](const Answers& a) { return a.yes("dynamo"); },
       .file_kind = {}},
      {.name = "dynamo_custom",
       .prompt = "Change the defaults of torch.compile?",
       .default_answer = "no",
       .help = "Asks for the mode, graph breaks, dynamic shapes and regional compilation.",
       .condition = [](const Answers& a) { return a.yes("dynamo"); },
       .file_kind = {}},
      {.name = "dynamo_mode",
       .prompt = "Which mode?",
       .kind = menu,
       .default_answer = "default",
       .key = "dynamo_config.dynamo_mode",
       .choices = allowed_words(key::dynamo_mode),
       .condition = customised,
       .file_kind = {}},
      {.name = "dynamo_use_fullgraph",
       .prompt = "Refuse graph breaks (fullgraph)?",
       .default_answer = "no",
       .key = "dynamo_config.dynamo_use_fullgraph",
       .condition = customised,
       .file_kind = {}},
      {.name = "dynamo_use_dynamic",
       .prompt = "Compile for dynamic shapes?",
       .default_answer = "no",
       .key = "dynamo_config.dynamo_use_dynamic",
       .condition = customised,
       .file_kind = {}},
      {.name = "dynamo_use_regional_compilation",
       .prompt = "Compile repeated blocks once (regional compilation)?",
       .default_answer = "no",
       .key = "dynamo_config.dynamo_use_regional_compilation",
       .condition = customised,
       .file_kind = {}},
  };
}

namespace {

bool te(const Answers& answers) {
  return answers.is("fp8_backend", "TE");
}
bool keeps_some_high(const Answers& answers) {
  return te(answers) && answers.is("fp8_override", Value::array());
}

// The keys are those that the library reads. The questionnaire of accelerate 1.15 writes three of them
// under names that it never reads.
std::vector<Question> transformer_engine_questions() {
  using enum QuestionKind;
  return {
      {.name = "fp8_use_autocast_during_eval",
       .prompt = "Use FP8 in evaluation too?",
       .default_answer = "no",
       .key = "fp8_config.use_autocast_during_eval",
       .condition = te},
      {.name = "fp8_margin",
       .prompt = "Margin for the gradient scaling?",
       .kind = integer,
       .default_answer = "0",
       .key = "fp8_config.margin",
       .condition = te},
      {.name = "fp8_interval",
       .prompt = "Steps between computations of the scaling factor?",
       .kind = integer,
       .default_answer = "1",
       .key = "fp8_config.interval",
       .condition = te},
      {.name = "fp8_format",
       .prompt = "Which FP8 format?",
       .kind = menu,
       .default_answer = "HYBRID",
       .key = "fp8_config.fp8_format",
       .choices = words({"HYBRID", "E4M3", "E5M2"}),
       .condition = te},
      {.name = "fp8_amax_history_len",
       .prompt = "Length of the history for the scaling factor?",
       .kind = integer,
       .default_answer = "1024",
       .key = "fp8_config.amax_history_len",
       .condition = te},
      {.name = "fp8_amax_compute_algo",
       .prompt = "Which value of the history is used?",
       .kind = menu,
       .default_answer = "max",
       .key = "fp8_config.amax_compute_algo",
       .choices = words({"max", "most_recent"}),
       .condition = te},
      {.name = "fp8_override",
       .prompt = "Compute some of the matrix products in higher precision?",
       .default_answer = "no",
       .key = "fp8_config.override_linear_precision",
       .choices = {{"yes", Value::array(), {}}, {"no", Value::array({false, false, false}), {}}},
       .condition = te},
      {.name = "fp8_override_fprop",
       .prompt = "The forward pass?",
       .default_answer = "no",
       .key = "fp8_config.override_linear_precision",
       .appends = true,
       .condition = keeps_some_high},
      {.name = "fp8_override_dgrad",
       .prompt = "The gradients of the inputs?",
       .default_answer = "no",
       .key = "fp8_config.override_linear_precision",
       .appends = true,
       .condition = keeps_some_high},
      {.name = "fp8_override_wgrad",
       .prompt = "The gradients of the weights?",
       .default_answer = "no",
       .key = "fp8_config.override_linear_precision",
       .appends = true,
       .condition = keeps_some_high},
  };
}

}  // namespace

std::vector<Question> precision_questions() {
  using enum QuestionKind;
  std::vector<Question> all = {
      {.name = "mixed_precision",
       .prompt = "Which mixed precision?",
       .kind = menu,
       .default_answer = "no",
       .key = "mixed_precision",
       .choices = allowed_words(key::mixed_precision),
       // A DeepSpeed config file contains it, and TPUs do not support it.
       .condition =
           [](const Answers& a) { return a.type() != DistributedType::xla && !a.yes("deepspeed_file"); },
       .file_kind = {}},
      {.name = "fp8_backend",
       .prompt = "Which library for FP8?",
       .kind = menu,
       .default_answer = "ao",
       .key = "fp8_config.backend",
       .choices = {{"ao", "AO", {}}, {"te", "TE", {}}, {"msamp", "MSAMP", {}}},
       .condition = [](const Answers& a) { return a.is("mixed_precision", "fp8"); }},
  };
  for (Question& question : transformer_engine_questions()) all.push_back(std::move(question));
  all.push_back({.name = "fp8_opt_level",
                 .prompt = "Which optimization level?",
                 .kind = menu,
                 .default_answer = "O2",
                 .key = "fp8_config.opt_level",
                 .choices = words({"O1", "O2"}),
                 .condition = [](const Answers& a) { return a.is("fp8_backend", "MSAMP"); }});
  all.push_back({.name = "fp8_all_gather",
                 .prompt = "Gather FSDP's shards in FP8?",
                 .default_answer = "yes",
                 .key = "fp8_config.enable_fsdp_float8_all_gather",
                 .condition = [](const Answers& a) { return a.is("fp8_backend", "AO"); }});
  all.push_back({.name = "fp8_pad_inner_dim",
                 .prompt = "Pad the inner dimension of matrix products?",
                 .default_answer = "yes",
                 .key = "fp8_config.pad_inner_dim",
                 .condition = [](const Answers& a) { return a.is("fp8_backend", "AO"); }});
  return all;
}

}  // namespace acc::launcher
