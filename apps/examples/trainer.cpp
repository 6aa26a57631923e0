// SPDX-License-Identifier: Apache-2.0
// The training of accelerated.cpp by a Trainer: it has the loop, the evaluation, checkpoints and logs, and
// takes transformers' arguments as flags.
//
//   trainer [--data-dir FOLDER] [--epochs N] [--output_dir RUN] [--resume_from_checkpoint last] ...
//   acc launch --num_processes 2 trainer ...
#include "acc/trainer.hpp"

#include <ATen/core/Tensor.h>

#include <cstdio>

#include "acc/error.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

acc::Metrics accuracy(const acc::EvalPrediction& all) {
  const at::Tensor right = all.predictions.argmax(1).eq(all.label_ids);
  return {{"accuracy", right.to(at::kDouble).mean().item<double>()}};
}

int main(int argc, char** argv) try {
  // The other words are the Trainer's.
  const Options options = parse_known_options(argc, argv, acc::training_arguments_help());
  acc::TrainingArguments defaults;
  defaults.num_train_epochs = options.epochs;
  defaults.per_device_train_batch_size = 64;
  defaults.per_device_eval_batch_size = 100;
  defaults.learning_rate = 1e-3;
  defaults.weight_decay = 0.01;
  defaults.lr_scheduler_type = acc::SchedulerType::constant;
  defaults.logging_strategy = acc::IntervalStrategy::epoch;
  defaults.eval_strategy = acc::IntervalStrategy::epoch;
  const auto arguments = acc::parse_training_arguments(argc, argv, defaults);

  const Data data = load_data(options.data_dir);
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
