// SPDX-License-Identifier: Apache-2.0
// A Trainer with a loss, an optimizer and a callback of the program's own, which ends when it no longer gets
// better.
//
//   own_trainer [--data-dir FOLDER] [--epochs N]
//   acc launch --num_processes 2 own_trainer [--data-dir FOLDER] [--epochs N]
#include <ATen/core/Tensor.h>
#include <ATen/ops/nll_loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>

#include "acc/error.hpp"
#include "acc/trainer.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

// begin own trainer
class DigitTrainer : public acc::Trainer<NetImpl, Images> {
 public:
  using Trainer::Trainer;

 protected:
  acc::LossOutput compute_loss(acc::Model<NetImpl>& model, Batch& batch) override {
    auto& [images, labels] = batch;
    const at::Tensor logits = model(images);
    return {.loss = at::nll_loss(logits, labels), .logits = logits, .labels = labels};
  }

  std::shared_ptr<torch::optim::Optimizer> create_optimizer() override {
    const auto options = torch::optim::SGDOptions(arguments().learning_rate).momentum(0.9);
    return std::make_shared<torch::optim::SGD>(model()->parameters(), options);
  }

  acc::Schedule create_schedule(std::int64_t num_training_steps) override {
    return acc::one_cycle_lr({.max_lr = {arguments().learning_rate}, .total_steps = num_training_steps + 1});
  }
};
// end own trainer

// begin callback
class SayBest : public acc::TrainerCallback {
 public:
  void on_save(const Arguments& /*arguments*/, State& state, Control& /*control*/) override {
    if (state.is_world_process_zero && state.best_global_step == state.global_step)
      std::printf("best so far: %.1f%%\n", 100 * *state.best_metric);
  }
};
// end callback

acc::Metrics accuracy(const acc::EvalPrediction& all) {
  const at::Tensor right = all.predictions.argmax(1).eq(all.label_ids);
  return {{"accuracy", right.to(at::kDouble).mean().item<double>()}};
}

int main(int argc, char** argv) try {
  const Options options = parse_options(argc, argv);
  const Data data = load_data(options.data_dir);
  acc::set_seed(42);
  Net net(data.train.channels(), data.train.side());
  // begin use
  acc::TrainingArguments arguments;
  arguments.output_dir = "own_trainer_output";
  arguments.num_train_epochs = options.epochs;
  arguments.per_device_train_batch_size = 64;
  arguments.learning_rate = 0.05;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::best;
  arguments.save_total_limit = 1;
  arguments.load_best_model_at_end = true;
  arguments.metric_for_best_model = "accuracy";

  DigitTrainer trainer(net, arguments, data.train, data.test, {.compute_metrics = accuracy});
  trainer.add_callback(std::make_shared<SayBest>());
  trainer.add_callback(std::make_shared<acc::EarlyStoppingCallback>(2));
  trainer.train();
  const acc::PredictionOutput test = trainer.predict(data.test);
  // end use
  if (trainer.accelerator().is_main_process())
    std::printf("accuracy: %.1f%% of %ld\n", 100 * test.metrics.at("test_accuracy"),
                static_cast<long>(test.predictions.size(0)));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
