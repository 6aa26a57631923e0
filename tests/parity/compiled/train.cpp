// SPDX-License-Identifier: Apache-2.0
// Trains a package as train_in_python of compare.py trains the model, and prints the loss of each step.
//   train PACKAGE NAME FOLDER [accumulate] [clip] [bf16]
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <c10/util/accumulate.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/modules.hpp"

namespace {

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

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto has = [&](const char* word) { return std::ranges::find(words, word) != words.end(); };
  const std::string& name = words.at(1);
  acc::Accelerator accelerator(
      {.mixed_precision = has("bf16") ? acc::MixedPrecision::bf16 : acc::MixedPrecision::no,
       .gradient_accumulation_steps = has("accumulate") ? 2 : 1});
  acc::CompiledModel net(words.at(0));
  torch::optim::SGD sgd(net->parameters(),
                        torch::optim::SGDOptions(has("slowly") ? 1e-3 : 0.1).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, std::move(sgd));
  torch::manual_seed(100 + static_cast<std::uint64_t>(accelerator.process_index()));  // of dropout
  for (std::int64_t step = 0; step < (has("slowly") ? 2 : kSteps); ++step) {
    const auto accumulation = accelerator.accumulate(model);
    const std::vector<at::Tensor> batch =
        batch_of(name, step * accelerator.num_processes() + accelerator.process_index());
    const auto [loss, outputs] = batch.size() == 1 ? model(batch[0]) : model(batch[0], batch[1]);
    accelerator.backward(loss);
    if (has("clip") && accelerator.sync_gradients()) accelerator.clip_grad_norm_(model->parameters(), 0.1);
    optimizer.step();
    optimizer.zero_grad();
    const double mean = accelerator.reduce(loss.detach(), acc::ReduceOp::mean).item<double>();
    if (accelerator.is_main_process()) std::printf("%.9g\n", mean);
  }
  accelerator.save_model(model, words.at(2));

  model->eval();
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> batch = batch_of(name, 0);
  const auto [loss, outputs] = batch.size() == 1 ? model(batch[0].narrow(0, 0, 1))
                                                 : model(batch[0].narrow(0, 0, 3), batch[1].narrow(0, 0, 3));
  if (accelerator.is_main_process())
    std::printf("%.9g\n%.9g\n", loss.item<double>(),
                outputs.at(0).to(at::kDouble).square().sum().item<double>());
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return acc::exit_code(error.kind());
}
