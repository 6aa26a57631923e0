// SPDX-License-Identifier: Apache-2.0
// visiting_trainer FOLDER: trains one epoch, in which each sample leaves a mark in its own weight that tells
// in a step of how many processes it was. With three processes it stops at step 10 until it is ended, alone
// at step 20, and says `stands at step S of P`; at last `visited by 1: A, by 2: B, by 3: C, else: D; step S`.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/embedding.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "acc/error.hpp"
#include "acc/trainer.hpp"

namespace {

constexpr std::int64_t kSamples = 360;
constexpr int kBatch = 4;

struct MarksImpl : torch::nn::Module {
  MarksImpl() : marks(register_module("marks", torch::nn::Embedding(kSamples, 1))) {
    const at::NoGradGuard no_grad;
    marks->weight.zero_();
  }
  at::Tensor forward(const at::Tensor& samples) { return marks(samples).squeeze(1); }

  torch::nn::Embedding marks;
};
TORCH_MODULE(Marks);

class Stand : public acc::TrainerCallback {
 public:
  explicit Stand(int processes) : processes_(processes) {}
  void on_step_end(const Arguments& /*arguments*/, State& state, Control& /*control*/) override {
    const std::int64_t step = processes_ == 3 ? 10 : processes_ == 1 ? 20 : -1;
    if (state.global_step != step) return;
    if (state.is_world_process_zero) {
      std::printf("stands at step %ld of %d\n", static_cast<long>(step), processes_);
      std::fflush(stdout);
    }
    while (true) ::pause();
  }

 private:
  int processes_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  acc::TrainingArguments arguments{.output_dir = argv[1]};
  arguments.num_train_epochs = 1;
  arguments.per_device_train_batch_size = kBatch;
  arguments.optim = acc::OptimizerName::sgd;
  arguments.lr_scheduler_type = acc::SchedulerType::constant;
  arguments.learning_rate = 1;
  arguments.max_grad_norm = 0;
  arguments.save_strategy = acc::SaveStrategy::no;
  arguments.memory_save_steps = 2;
  arguments.use_cpu = true;
  // The loss of a sample is (mark - 1)^2, so that its first step takes 2 / (kBatch * processes).
  acc::Trainer trainer(Marks(), arguments, acc::TensorDataset(at::arange(kSamples), at::ones({kSamples})));
  trainer.add_callback(std::make_shared<Stand>(trainer.accelerator().num_processes()));
  const acc::TrainOutput output = trainer.train();
  const auto visited_by = [&](int processes) {
    const at::Tensor once = at::ones({kSamples, 1}) * (2.0 / (kBatch * processes));
    return at::isclose(trainer.model()->marks->weight, once).sum().item<std::int64_t>();
  };
  const long one = visited_by(1);
  const long two = visited_by(2);
  const long three = visited_by(3);
  if (trainer.accelerator().is_main_process())
    std::printf("visited by 1: %ld, by 2: %ld, by 3: %ld, else: %ld; step %ld\n", one, two, three,
                kSamples - one - two - three, static_cast<long>(output.global_step));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
