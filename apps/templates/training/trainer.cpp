// SPDX-License-Identifier: Apache-2.0
// A Trainer has the loop, the evaluation, checkpoints and logs. Its arguments are flags of this program, by
// the names of transformers (--help lists them):
//
//   build/@name@ --num_train_epochs 30
//   acc launch --num_processes 2 build/@name@ --learning_rate 0.01 --resume_from_checkpoint last
#include <acc/acc.hpp>
#include <cstdio>

#include "model.hpp"

acc::Metrics accuracy(const acc::EvalPrediction& all) {
  const at::Tensor right = all.predictions.argmax(1).eq(all.label_ids);
  return {{"accuracy", right.to(torch::kDouble).mean().item<double>()}};
}

int main(int argc, char** argv) try {
  acc::TrainingArguments arguments;
  arguments.output_dir = "run";
  arguments.num_train_epochs = 20;
  arguments.per_device_train_batch_size = 50;
  arguments.per_device_eval_batch_size = 100;
  arguments.learning_rate = 5e-3;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.save_total_limit = 2;
  arguments = acc::parse_training_arguments(argc, argv, arguments);

  acc::set_seed(arguments.seed);
  const Spirals test(500, 0.5);
  acc::Trainer trainer(Net(), arguments, Spirals(2000), test, {.compute_metrics = accuracy});
  trainer.train();
  trainer.save_model();
  const acc::Metrics metrics = trainer.evaluate();
  if (trainer.accelerator().is_main_process())
    std::printf("%.1f%% of %zu right\n", 100 * metrics.at("eval_accuracy"), test.size());
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
