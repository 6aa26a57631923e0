// SPDX-License-Identifier: Apache-2.0
// Trains a package as train_in_python of compare.py trains the model, and prints the loss of each step.
//   train PACKAGE NAME FOLDER [accumulate] [clip] [bf16] [slowly] [sharded] [resumed | trainer]
// resumed: after two steps the state is saved, the model and the optimizer are spoilt, and the state is
// loaded. trainer: by acc::Trainer.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <c10/util/accumulate.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/modules.hpp"
#include "acc/trainer.hpp"

namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const char* word) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::int64_t kSteps = 6;
constexpr std::int64_t kBatch = 4;

at::Tensor values(std::int64_t count, std::int64_t index) {
  return (at::arange(count) * 7919 + index * 104729).remainder(1009);
}

std::vector<at::Tensor> batch_of(const std::string& name, std::int64_t index) {
  if (name == "gpt2") {
    const at::Tensor tokens = values(kBatch * 32, index).view({kBatch, 32});
    return {tokens, tokens};
  }
  if (name == "gpt") return {values(kBatch * 7, index).remainder(20).view({kBatch, 7})};
  const at::Tensor targets = (at::arange(kBatch) + index).remainder(5);
  const std::vector<std::int64_t> shape = name == "mlp"   ? std::vector<std::int64_t>{kBatch, 12}
                                          : name == "cnn" ? std::vector<std::int64_t>{kBatch, 1, 8, 8}
                                                          : std::vector<std::int64_t>{kBatch, 3, 64, 64};
  const at::Tensor inputs = values(c10::multiply_integers(shape), index).to(at::kFloat) / 1009 - 0.5;
  return {inputs.view(shape), targets};
}

void print(double value) {
  std::printf("%.9g\n", value);
}

void evaluate(acc::CompiledModel& net, const std::string& name) {
  net->eval();
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> batch = batch_of(name, 0);
  const auto [loss, outputs] = batch.size() == 1
                                   ? net->forward(batch[0].narrow(0, 0, 1))
                                   : net->forward(batch[0].narrow(0, 0, 3), batch[1].narrow(0, 0, 3));
  print(loss.item<double>());
  print(outputs.at(0).to(at::kDouble).square().sum().item<double>());
}

void train(acc::CompiledModel& net, const Words& words) {
  const std::string& name = words.at(1);
  acc::Accelerator accelerator(
      {.mixed_precision = has(words, "bf16") ? acc::MixedPrecision::bf16 : acc::MixedPrecision::no,
       .gradient_accumulation_steps = has(words, "accumulate") ? 2 : 1,
       .fsdp = has(words, "sharded") ? std::optional<acc::FsdpOptions>(std::in_place) : std::nullopt});
  torch::optim::SGD sgd(net->parameters(),
                        torch::optim::SGDOptions(has(words, "slowly") ? 1e-3 : 0.1).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, std::move(sgd));
  torch::manual_seed(100 + static_cast<std::uint64_t>(accelerator.process_index()));  // of dropout
  const auto step = [&, &model = model, &optimizer = optimizer](const std::vector<at::Tensor>& batch) {
    const auto accumulation = accelerator.accumulate(model);
    const auto [loss, outputs] = batch.size() == 1 ? model(batch[0]) : model(batch[0], batch[1]);
    accelerator.backward(loss);
    if (has(words, "clip") && accelerator.sync_gradients())
      accelerator.clip_grad_norm_(model->parameters(), 0.1);
    optimizer.step();
    optimizer.zero_grad();
    return accelerator.reduce(loss.detach(), acc::ReduceOp::mean).template item<double>();
  };
  const std::string state = words.at(2) + "/state";
  for (std::int64_t i = 0; i < (has(words, "slowly") ? 2 : kSteps); ++i) {
    if (has(words, "resumed") && i == 2) {
      accelerator.save_state(state);
      for (std::int64_t other = 0; other < 2; ++other) step(batch_of(name, kSteps + other));
      accelerator.load_state(state);
    }
    const double mean = step(batch_of(name, i * accelerator.num_processes() + accelerator.process_index()));
    if (accelerator.is_main_process()) print(mean);
  }
  accelerator.save_model(model, words.at(2));
  if (accelerator.is_main_process()) evaluate(net, name);
}

// The rows of all batches in their order.
auto data_of(const std::string& name, int processes) {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;
  for (std::int64_t i = 0; i < kSteps * processes; ++i) {
    const std::vector<at::Tensor> batch = batch_of(name, i);
    inputs.push_back(batch[0]);
    targets.push_back(batch[1]);
  }
  return acc::TensorDataset(at::cat(inputs), at::cat(targets));
}

void train_by_trainer(acc::CompiledModel& net, const Words& words) {
  const acc::PartialState state;
  acc::TrainingArguments arguments;
  arguments.output_dir = words.at(2);
  arguments.per_device_train_batch_size = kBatch;
  arguments.num_train_epochs = 1;
  arguments.train_sampling_strategy = acc::SamplingStrategy::sequential;
  arguments.optim = acc::OptimizerName::sgd;
  arguments.optim_args = "momentum=0.9";
  arguments.learning_rate = 0.1;
  arguments.lr_scheduler_type = acc::SchedulerType::constant;
  arguments.max_grad_norm = 0;
  arguments.logging_steps = 1;
  arguments.save_strategy = acc::SaveStrategy::no;
  arguments.disable_tqdm = true;
  arguments.bf16 = has(words, "bf16");
  acc::Trainer trainer(net, arguments, data_of(words.at(1), state.num_processes()));
  trainer.train();
  trainer.save_model(words.at(2));
  if (!state.is_main_process()) return;
  for (const acc::Metrics& entry : trainer.state().log_history)
    if (const auto loss = entry.find("loss"); loss != entry.end()) print(loss->second);
  evaluate(net, words.at(1));
}

}  // namespace

int main(int argc, char** argv) try {
  const Words words(argv + 1, argv + argc);
  acc::CompiledModel net(words.at(0));
  if (has(words, "trainer")) {
    train_by_trainer(net, words);
  } else {
    train(net, words);
  }
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return acc::exit_code(error.kind());
}
