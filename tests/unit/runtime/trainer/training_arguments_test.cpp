// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace training_arguments_test {

using acc::TrainingArguments;
using acc::test::error_of;

namespace {

TrainingArguments parse(std::vector<const char*> flags, std::vector<std::string>* rest = nullptr,
                        const TrainingArguments& defaults = {}) {
  flags.insert(flags.begin(), "train");
  return acc::parse_training_arguments(static_cast<int>(flags.size()), flags.data(), defaults, rest);
}

std::string refusal(TrainingArguments arguments) {
  return error_of([&] { acc::completed(std::move(arguments)); });
}

}  // namespace

TEST_CASE("training_arguments: flags change the defaults, in both spellings", "[runtime]") {
  TrainingArguments defaults;
  defaults.weight_decay = 0.5;
  const TrainingArguments arguments = parse(
      {"--learning_rate", "1e-3", "--per-device-train-batch-size=64", "--num_train_epochs", "0.5",
       "--eval_strategy", "epoch", "--eval-steps", "0.25", "--report_to", "tensorboard,jsonl", "--output_dir",
       "run", "--lr_scheduler_kwargs", R"({"num_cycles": 2})", "--save_total_limit", "3"},
      nullptr, defaults);
  CHECK(arguments.learning_rate == 1e-3);
  CHECK(arguments.per_device_train_batch_size == 64);
  CHECK(arguments.num_train_epochs == 0.5);
  CHECK(arguments.eval_strategy == acc::IntervalStrategy::epoch);
  CHECK(arguments.eval_steps == 0.25);
  CHECK(arguments.report_to == std::vector<std::string>{"tensorboard", "jsonl"});
  CHECK(arguments.output_dir == "run");
  CHECK(arguments.lr_scheduler_kwargs.at("num_cycles") == 2);
  CHECK(arguments.save_total_limit == 3);
  CHECK(arguments.weight_decay == 0.5);
}

TEST_CASE("training_arguments: a flag for a truth value needs no value and may have one", "[runtime]") {
  CHECK(parse({"--bf16", "--do_train"}).bf16);
  CHECK(parse({"--bf16", "--do_train"}).do_train);
  CHECK_FALSE(parse({"--dataloader_pin_memory", "False"}).dataloader_pin_memory);
  CHECK(parse({"--greater_is_better=false"}).greater_is_better == false);
}

TEST_CASE("training_arguments: a list of names is divided by commas, and empty ones are ignored",
          "[runtime]") {
  CHECK(parse({"--report_to", ",tensorboard,,jsonl,"}).report_to ==
        std::vector<std::string>{"tensorboard", "jsonl"});
  CHECK(parse({"--report_to", "none"}).report_to.empty());
}

TEST_CASE("training_arguments: names of transformers 4 are accepted", "[runtime]") {
  CHECK(parse({"--evaluation_strategy", "steps"}).eval_strategy == acc::IntervalStrategy::steps);
  CHECK(parse({"--warmup_ratio", "0.1"}).warmup_steps == 0.1);
  CHECK(parse({"--no_cuda"}).use_cpu);
  CHECK_FALSE(parse({"--remove_unused_columns", "false"}).remove_unused_columns);
  CHECK(parse({"--optim", "adamw_torch_fused"}).optim == acc::OptimizerName::adamw_torch);
}

TEST_CASE("training_arguments: of both names of an argument in a file that one counts which changes it",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto read = [&](const char* text) {
    return acc::read_training_arguments(folder.write("arguments.json", text));
  };
  CHECK(read(R"({"warmup_ratio": 0.1, "warmup_steps": 0})").warmup_steps == 0.1);
  CHECK(read(R"({"warmup_ratio": 0.0, "warmup_steps": 100})").warmup_steps == 100);
  CHECK(read(R"({"warmup_ratio": 0.1, "warmup_steps": 100})").warmup_steps == 100);
  CHECK(read(R"({"eval_strategy": "epoch", "evaluation_strategy": null})").eval_strategy ==
        acc::IntervalStrategy::epoch);
  CHECK(read(R"({"eval_strategy": "no", "evaluation_strategy": "steps"})").eval_strategy ==
        acc::IntervalStrategy::steps);
  CHECK(read(R"({"no_cuda": false, "use_cpu": true})").use_cpu);
}

TEST_CASE("training_arguments: fsdp is a truth value, and the words of transformers 4 are explained",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  CHECK_FALSE(acc::read_training_arguments(folder.write("none.json", R"({"fsdp": []})")).fsdp);
  CHECK(error_of([] { parse({"--fsdp", "full_shard auto_wrap"}); }) ==
        "--fsdp: \"full_shard auto_wrap\" is not true or false (full_shard is true; shard_grad_op is true "
        "with reshard_after_forward false in fsdp_config)");
}

TEST_CASE("training_arguments: folders may begin with ~, and none is the default", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto read = [&](const char* text) {
    return acc::completed(acc::read_training_arguments(folder.write("arguments.json", text)));
  };
  CHECK(read(R"({"output_dir": null})").output_dir == "trainer_output");
  CHECK(read(R"({"output_dir": "~/run"})").output_dir.is_absolute());
  CHECK(read(R"({"output_dir": "~/run"})").logging_dir.is_absolute());
  CHECK_THAT(error_of([&] { read(R"({"output_dir": ["run"]})"); }),
             Catch::Matchers::Contains("output_dir: [\"run\"] is not a string"));
}

TEST_CASE("training_arguments: an option of the schedule that is null has its default", "[runtime]") {
  const auto kwargs =
      parse({"--lr_scheduler_kwargs", R"({"min_lr": null, "min_lr_rate": 0.1})"}).lr_scheduler_kwargs;
  CHECK_FALSE(kwargs.contains("min_lr"));
  CHECK(kwargs.at("min_lr_rate") == 0.1);
}

TEST_CASE("training_arguments: the program's own arguments are returned, in order", "[runtime]") {
  std::vector<std::string> rest;
  CHECK(parse({"data", "--seed", "7", "--model", "small"}, &rest).seed == 7);
  CHECK(rest == std::vector<std::string>{"data", "--model", "small"});
  // A flag takes one word, and names of arguments without a field are the program's.
  CHECK(parse({"--learning_rate", "0.5", "1", "--project", "mine", "--max_steps=3", "4"}, &rest).max_steps ==
        3);
  CHECK(rest == std::vector<std::string>{"1", "--project", "mine", "4"});
  CHECK(error_of([] { parse({"--max_stpes", "3"}); }) ==
        "--max_stpes: is not a training argument (did you mean --max_steps?)");
  CHECK(acc::training_arguments_help().find("--learning_rate,--learning-rate TEXT=5e-05") !=
        std::string::npos);
}

TEST_CASE("training arguments: an empty value is not a flag without one", "[runtime]") {
  CHECK(parse({"--bf16"}).bf16);
  CHECK_THAT(error_of([] { parse({"--bf16", ""}); }), Catch::Matchers::Contains("--bf16"));
  CHECK(parse({"--run_name", ""}).run_name.empty());
  CHECK(parse({"--resume_from_checkpoint", ""}).resume_from_checkpoint.empty());
}

TEST_CASE("training_arguments: a value that does not fit is named with its flag", "[runtime]") {
  CHECK(error_of([] { parse({"--learning_rate", "fast"}); }) == "--learning_rate: \"fast\" is not a number");
  CHECK(error_of([] { parse({"--max_steps", "1.5"}); }) == "--max_steps: 1.5 is not an integer in its range");
  CHECK(error_of([] { parse({"--bf16", "perhaps"}); }) == "--bf16: \"perhaps\" is not true or false");
  CHECK(error_of([] { parse({"--save_strategy", "often"}); }) ==
        "--save_strategy: \"often\" is not one of its values (use one of no, steps, epoch, best)");
}

TEST_CASE("training_arguments: a number may be written as in Python", "[runtime]") {
  CHECK(parse({"--learning_rate", ".01"}).learning_rate == 0.01);
  CHECK(parse({"--learning_rate=+1e-3"}).learning_rate == 1e-3);
  CHECK(parse({"--eval_steps", "5."}).eval_steps == 5);
  CHECK(parse({"--max_steps", "+5"}).max_steps == 5);
  CHECK(error_of([] { parse({"--learning_rate", "inf"}); }) == "--learning_rate: \"inf\" is not a number");
}

TEST_CASE("training_arguments: a file is read, and what is wrong in it is named", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("good.json", R"({"learning_rate": 0.01, "fp16": true, "report_to": "none",
    "resume_from_checkpoint": true, "evaluation_strategy": "epoch", "eval_steps": null})");
  const TrainingArguments arguments = acc::read_training_arguments(file);
  CHECK(arguments.learning_rate == 0.01);
  CHECK(arguments.fp16);
  CHECK(arguments.report_to.empty());
  CHECK(arguments.resume_from_checkpoint == "true");
  CHECK(arguments.eval_strategy == acc::IntervalStrategy::epoch);
  CHECK(parse({file.c_str()}) == arguments);

  const auto unknown = folder.write("unknown.json", R"({"learning_rte": 0.01})");
  CHECK(error_of([&] { acc::read_training_arguments(unknown); }) ==
        unknown.string() + ": learning_rte: is not a training argument (did you mean 'learning_rate'?)");
  const auto wrong = folder.write("wrong.json", R"({"seed": -1})");
  CHECK(error_of([&] { acc::read_training_arguments(wrong); }) ==
        wrong.string() + ": seed: -1 is not an integer in its range");
  const auto list = folder.write("list.json", "[]");
  CHECK(error_of([&] { acc::read_training_arguments(list); }) == list.string() + ": is not a JSON object");
}

TEST_CASE("training_arguments: arguments that are objects are read from JSON, a flag or their own file",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto own_arguments =
      folder.write("fsdp.json", R"({"fsdp_transformer_layer_cls_to_wrap": "Block", "version": 2})");
  const auto file =
      folder.write("arguments.json", R"({"fsdp": true, "fsdp_config": ")" + own_arguments.string() +
                                         R"(", "accelerator_config": {"even_batches": false,
      "gradient_accumulation_kwargs": {"num_steps": 4}}})");
  const TrainingArguments arguments = acc::read_training_arguments(file);
  CHECK(arguments.fsdp == true);
  CHECK(arguments.fsdp_config.transformer_layer_cls_to_wrap == std::vector<std::string>{"Block"});
  CHECK_FALSE(arguments.accelerator_config.even_batches);
  CHECK(acc::completed(arguments).gradient_accumulation_steps == 4);
  CHECK(parse({"--accelerator_config", R"({"split_batches": true})"}).accelerator_config.split_batches);
  CHECK(error_of([] { parse({"--fsdp_config", R"({"auto_wrap_polcy": 1})"}); }) ==
        "--fsdp_config: auto_wrap_polcy: is not a training argument (did you mean 'auto_wrap_policy'?)");
  CHECK(
      error_of([] { parse({"--fsdp_config", R"({"auto_wrap_policy": "ALL"})"}); }) ==
      "--fsdp_config: auto_wrap_policy: \"ALL\" is not one of its values (use one of TRANSFORMER_BASED_WRAP, "
      "SIZE_BASED_WRAP, NO_WRAP)");
}

TEST_CASE("training_arguments: activation checkpointing has two names, and token counts two spellings",
          "[runtime]") {
  CHECK(acc::completed(parse({"--activation_checkpointing"})).gradient_checkpointing);
  CHECK(acc::completed(parse({"--gradient_checkpointing"})).activation_checkpointing);
  CHECK(parse({"--include_num_input_tokens_seen", "all"}).include_num_input_tokens_seen ==
        acc::TokenCount::all);
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("arguments.json", R"({"include_num_input_tokens_seen": true})");
  CHECK(acc::read_training_arguments(file).include_num_input_tokens_seen == acc::TokenCount::all);
}

TEST_CASE("training_arguments: written arguments can be read", "[runtime]") {
  TrainingArguments arguments;
  arguments.output_dir = "a b";
  arguments.learning_rate = 0.1;
  arguments.eval_steps = 0.2;
  arguments.report_to = {"jsonl"};
  arguments.lr_scheduler_type = acc::SchedulerType::cosine_with_restarts;
  arguments.lr_scheduler_kwargs = {{"num_cycles", 3}, {"decay_type", "1-sqrt"}};
  arguments.accelerator_config.dispatch_batches = true;
  arguments.fsdp_config.state_dict_type = acc::StateDictType::sharded;
  arguments.ddp_backend = acc::CudaBackend::gloo;
  const acc::test::TemporaryFolder folder;
  CHECK(acc::read_training_arguments(folder.write("all.json", acc::to_json(arguments))) == arguments);
}

TEST_CASE("training_arguments: a fraction of steps may be a multiple of another", "[runtime]") {
  TrainingArguments arguments;
  arguments.load_best_model_at_end = true;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  for (const auto& [save, eval] : {std::pair(0.6, 0.2), {0.3, 0.1}, {0.7, 0.1}, {0.25, 0.25}}) {
    arguments.save_steps = save;
    arguments.eval_steps = eval;
    CHECK_NOTHROW(acc::completed(arguments));
  }
}

TEST_CASE("training_arguments: a number of steps is whole, or a fraction of all", "[runtime]") {
  const auto text = [](const char* name) {
    return std::string(name) +
           ": must be a whole number of steps, or less than 1: a fraction of all (write 2)";
  };
  TrainingArguments arguments;
  arguments.logging_steps = 2.5;
  CHECK(refusal(arguments) == text("logging_steps"));
  arguments.logging_steps = 2;
  arguments.save_steps = 2.5;
  CHECK(refusal(arguments) == text("save_steps"));
  arguments.save_steps = 2;
  arguments.memory_save_steps = 2.5;
  CHECK(refusal(arguments) == text("memory_save_steps"));
  arguments.memory_save_steps = 0;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  arguments.eval_steps = 2.5;
  CHECK(refusal(arguments) == text("eval_steps"));
  arguments.eval_strategy = acc::IntervalStrategy::no;
  CHECK_NOTHROW(acc::completed(arguments));
}

TEST_CASE("training_arguments: what cannot be written as JSON is refused", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.output_dir = "caf\xe9";
  CHECK(refusal(arguments) == "output_dir: is not UTF-8");
  arguments.output_dir = "caf\xc3\xa9";
  CHECK_NOTHROW(acc::completed(arguments));
  arguments.run_name = "caf\xe9";
  CHECK(refusal(arguments) == "run_name: is not UTF-8");
}

TEST_CASE("training_arguments: arguments that exclude each other are refused before anything starts",
          "[runtime]") {
  TrainingArguments both;
  both.bf16 = both.fp16 = true;
  CHECK(refusal(both) == "bf16, fp16: exclude each other (choose one)");
  CHECK(refusal(parse({"--bf16_full_eval", "--fp16-full-eval"})) ==
        "bf16_full_eval, fp16_full_eval: exclude each other (choose one)");
  TrainingArguments saves;
  saves.save_in_background = saves.save_only_model = true;
  CHECK(refusal(saves) == "save_in_background, save_only_model: exclude each other (choose one)");
  TrainingArguments best;
  best.load_best_model_at_end = true;
  CHECK(refusal(best) ==
        "load_best_model_at_end: needs save_strategy and eval_strategy to be the same (set both to epoch or "
        "both to steps, or save_strategy to best)");
  best.eval_strategy = acc::IntervalStrategy::steps;
  best.eval_steps = 300;
  CHECK(refusal(best) == "load_best_model_at_end: needs save_steps to be a multiple of eval_steps");
  best.eval_steps = 0.2;
  CHECK(refusal(best) ==
        "load_best_model_at_end: needs save_steps to be a multiple of eval_steps (give both as numbers of "
        "steps, or both as fractions of all)");
  best.save_steps = 0.5;
  CHECK(refusal(best) == "load_best_model_at_end: needs save_steps to be a multiple of eval_steps");
  TrainingArguments metrics;
  metrics.include_for_metrics = {"loss", "labels"};
  CHECK(refusal(metrics) ==
        "include_for_metrics: 'labels' is not one of its values (use inputs, loss or both)");
  TrainingArguments steps;
  steps.gradient_accumulation_steps = 2;
  steps.accelerator_config.gradient_accumulation_kwargs.num_steps = 4;
  CHECK(refusal(steps) ==
        "gradient_accumulation_steps, accelerator_config: num_steps: exclude each other (set one of them)");
  TrainingArguments empty;
  empty.per_device_train_batch_size = 0;
  CHECK(refusal(empty) == "per_device_train_batch_size: must be greater than 0");
}

TEST_CASE("training_arguments: a number outside of its range is refused before anything starts",
          "[runtime]") {
  CHECK(refusal(parse({"--learning_rate=-1"})) == "learning_rate: must not be negative");
  CHECK(refusal(parse({"--weight_decay=-1"})) == "weight_decay: must not be negative");
  CHECK(refusal(parse({"--adam_beta1=-0.5"})) == "adam_beta1: must be at least 0 and less than 1");
  CHECK(refusal(parse({"--adam_beta2=1"})) == "adam_beta2: must be at least 0 and less than 1");
  CHECK(refusal(parse({"--adam_epsilon=-1e-8"})) == "adam_epsilon: must not be negative");
  CHECK(refusal(parse({"--warmup_steps=-1"})) == "warmup_steps: must not be negative");
  CHECK(refusal(parse({"--dataloader_prefetch_factor=-1"})) ==
        "dataloader_prefetch_factor: must be greater than 0");
  CHECK(refusal(parse({"--ddp_timeout=-5"})) == "ddp_timeout: must be greater than 0");
  CHECK(refusal(parse({"--ddp_bucket_cap_mb=0"})) == "ddp_bucket_cap_mb: must be greater than 0");
  CHECK(refusal(parse({"--fsdp_config", R"({"min_num_params": -1})"})) ==
        "fsdp_config: min_num_params: must not be negative");
}

TEST_CASE("training_arguments: the name of the metric determines whether greater is better", "[runtime]") {
  TrainingArguments arguments;
  arguments.load_best_model_at_end = true;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  CHECK(acc::completed(arguments).metric_for_best_model == "loss");
  CHECK(acc::completed(arguments).greater_is_better == false);
  arguments.metric_for_best_model = "accuracy";
  CHECK(acc::completed(arguments).greater_is_better == true);
}

}  // namespace training_arguments_test
