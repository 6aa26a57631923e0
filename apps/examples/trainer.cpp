// SPDX-License-Identifier: Apache-2.0
// The training of accelerated.cpp by a Trainer: it has the loop, the evaluation, checkpoints and logs, and
// takes transformers' arguments as flags.
//
//   trainer [FOLDER] [--num_train_epochs 3] [--output_dir RUN] [--resume_from_checkpoint last] ...
//   acc launch --num_processes 2 trainer [FOLDER] ...
#include "acc/trainer.hpp"

#include <ATen/core/Tensor.h>

#include <cstdio>

#include "acc/error.hpp"
#include "common/images.hpp"
#include "common/net.hpp"

acc::Metrics accuracy(const acc::EvalPrediction& all) {
  const at::Tensor right = all.predictions.argmax(1).eq(all.label_ids);
  return {{"accuracy", right.to(at::kDouble).mean().item<double>()}};
}

int main(int argc, char** argv) try {
  acc::TrainingArguments defaults;
  defaults.num_train_epochs = 3;
  defaults.per_device_train_batch_size = 32;
  defaults.per_device_eval_batch_size = 100;
  defaults.learning_rate = 1e-3;
  defaults.logging_strategy = acc::IntervalStrategy::epoch;
  defaults.eval_strategy = acc::IntervalStrategy::epoch;
  std::vector<std::string> rest;
  const auto arguments = acc::parse_training_arguments(argc, argv, defaults, &rest);

  for (const std::string& word : rest) {
    if (word == "--help") return std::fputs(acc::training_arguments_help(defaults).c_str(), stdout) < 0;
    if (word.starts_with("-") || word != rest.front())
      throw acc::Error({.what = "is not an argument", .where = word, .hint = "--help lists them"});
  }
  const Data data = load_data(rest.empty() ? "" : rest.front());
  acc::set_seed(arguments.seed);
  Net net(data.train.channels(), data.train.side());
  acc::Trainer trainer(net, arguments, data.train, data.test, {.compute_metrics = accuracy});
  trainer.train();
  trainer.save_model();
  const acc::Metrics metrics = trainer.evaluate();
  if (trainer.accelerator().is_main_process())
    std::printf("accuracy: %.1f%% of %zu\n", 100 * metrics.at("eval_accuracy"), *data.test.size());
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
