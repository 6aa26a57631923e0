// SPDX-License-Identifier: Apache-2.0
// What acc::Accelerator does on two processes, told in lines that trace.py tells as well.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "acc/runtime/accelerator.hpp"
#include "acc/runtime/data/tensor_dataset.hpp"

namespace {

void tell(const acc::Accelerator& accelerator, const std::string& case_name, const std::string& name,
          const std::vector<double>& values) {
  std::string line = fmt::format("{} {} {}", accelerator.process_index(), case_name, name);
  for (const double value : values) line += fmt::format(" {:.9g}", value);
  std::puts(line.c_str());
  std::fflush(stdout);
}

at::Tensor inputs() {
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 2; ++j) values.push_back(static_cast<float>(((i * 7 + j * 3) % 11 - 5) * 0.2));
  }
  return torch::tensor(values).reshape({20, 2});
}

void train(const std::string& case_name, const acc::AcceleratorOptions& options, acc::Schedule schedule) {
  acc::Accelerator accelerator(options);
  torch::nn::Linear net(2, 1);
  {
    const at::NoGradGuard no_grad;
    net->weight.copy_(torch::tensor({{0.5F, -0.3F}}));
    net->bias.fill_(0.1F);
  }
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  acc::Scheduler plain(sgd, std::move(schedule));
  const std::size_t batch_size = options.split_batches ? 4 : 2;
  auto [model, optimizer, loader, scheduler] = accelerator.prepare(
      net, std::move(sgd), acc::DataLoader(acc::TensorDataset(inputs()), {.batch_size = batch_size}),
      std::move(plain));
  auto& settings = static_cast<torch::optim::SGDOptions&>(optimizer.native().param_groups()[0].options());
  int number = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& [x] : loader) {
      const auto batch = accelerator.accumulate(model);
      const at::Tensor loss = (model(x) - 1).square().mean();
      accelerator.backward(loss);
      double norm = 0;
      if (accelerator.sync_gradients())
        norm = accelerator.clip_grad_norm_(net->parameters(), 0.4).item<double>();
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      tell(accelerator, case_name, fmt::format("batch_{}", number++),
           {accelerator.sync_gradients() ? 1.0 : 0.0, static_cast<double>(accelerator.step()),
            loss.item<double>(), norm, scheduler->last_lr()[0], settings.momentum(),
            net->weight[0][0].item<double>(), net->weight[0][1].item<double>(), net->bias.item<double>()});
    }
  }
}

}  // namespace

int main() {
  const auto inverse = [] {
    return acc::lambda_lr([](std::int64_t step) { return 1 / (1 + static_cast<double>(step)); });
  };
  const acc::PartialState job;
  train("accumulate", {.gradient_accumulation_steps = 3},
        acc::one_cycle_lr({.max_lr = {0.4}, .total_steps = 6}));
  train("each_batch",
        {.gradient_accumulation_steps = 2,
         .gradient_accumulation = {.sync_with_dataloader = false, .sync_each_batch = true}},
        inverse());
  train("split_batches", {.gradient_accumulation_steps = 2, .split_batches = true}, inverse());
}
