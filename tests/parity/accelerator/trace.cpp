// SPDX-License-Identifier: Apache-2.0
// Prints the results of acc::Accelerator on two processes; trace.py prints the same lines for accelerate.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"

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

std::vector<double> flat(const at::Tensor& tensor, bool with_shape = true) {
  std::vector<double> values;
  if (with_shape) values.assign(tensor.sizes().begin(), tensor.sizes().end());
  const at::Tensor numbers = tensor.to(at::kDouble).flatten();
  for (std::int64_t i = 0; i < numbers.numel(); ++i) values.push_back(numbers[i].item<double>());
  return values;
}

std::vector<double> numbers(int from, int to) {
  std::vector<double> all;
  for (int i = from; i < to; ++i) all.push_back(i);
  return all;
}

void share(const acc::Accelerator& accelerator) {
  using Case = std::pair<int, bool>;
  for (const auto& [length, padding] : {Case(4, false), Case(3, true), Case(3, false), Case(1, true),
                                        Case(1, false), Case(17, false), Case(17, true)}) {
    const std::string name = fmt::format("{}_{}", length, padding ? "padded" : "plain");
    tell(accelerator, "split_list", name, accelerator.split_between_processes(numbers(0, length), padding));
    const at::Tensor rows = torch::arange(2 * length).reshape({length, 2});
    tell(accelerator, "split_tensor", name, flat(accelerator.split_between_processes(rows, padding)));
  }
  auto [a, b, c] =
      accelerator.split_between_processes(std::tuple(numbers(0, 8), numbers(8, 16), torch::arange(16, 24)));
  a.insert(a.end(), b.begin(), b.end());
  for (const double value : flat(c, false)) a.push_back(value);
  tell(accelerator, "split_values", "8", a);
}

void exchange(const acc::Accelerator& accelerator) {
  const int rank = accelerator.process_index();
  const at::Tensor local = torch::full({rank + 1, 2}, rank + 0.5);
  const std::vector<std::pair<std::string, acc::PadOptions>> pads{
      {"last", {.pad_index = 7}},
      {"first", {.pad_first = true}},
      {"other_dim", {.dim = 1}},
      {"negative_dim", {.dim = -2, .pad_index = 3}},
      {"no_dim", {.dim = 2}}};
  for (const auto& [name, options] : pads) {
    tell(accelerator, "pad", name, flat(accelerator.pad_across_processes(local, options)));
  }
  const std::map<std::string, std::vector<at::Tensor>> nested{
      {"a", {torch::tensor(rank + 1.0)}}, {"b", {torch::tensor({static_cast<double>(rank), 2.0})}}};
  const auto traced = [&](const std::string& name,
                          const std::map<std::string, std::vector<at::Tensor>>& moved) {
    std::vector<double> values = flat(moved.at("a")[0], false);
    for (const double value : flat(moved.at("b")[0], false)) values.push_back(value);
    tell(accelerator, "nested", name, values);
  };
  traced("gather", accelerator.gather(nested));
  traced("sum", accelerator.reduce(nested));
  traced("mean", accelerator.reduce(nested, acc::ReduceOp::mean));
  traced("max", accelerator.reduce(nested, acc::ReduceOp::max));
  traced("none", accelerator.reduce(nested, acc::ReduceOp::none));
}

}  // namespace

int main() {
  const auto inverse = [] {
    return acc::lambda_lr([](std::int64_t step) { return 1 / (1 + static_cast<double>(step)); });
  };
  const acc::Accelerator job;
  share(job);
  exchange(job);
  train("accumulate", {.gradient_accumulation_steps = 3},
        acc::one_cycle_lr({.max_lr = {0.4}, .total_steps = 6}));
  train("each_batch",
        {.gradient_accumulation_steps = 2,
         .gradient_accumulation = {.sync_with_dataloader = false, .sync_each_batch = true}},
        inverse());
  train("split_batches", {.gradient_accumulation_steps = 2, .split_batches = true}, inverse());
}
