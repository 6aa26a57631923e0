// SPDX-License-Identifier: Apache-2.0
// train SETUP: 20 steps with fixed seeds; each process prints its losses. train.py does the same in Python.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator.hpp"
#include "acc/runtime/data/tensor_dataset.hpp"

namespace {

// Named as the parts of Python's Sequential are.
torch::nn::Sequential make_net(bool norm) {
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(16, 64));
  if (norm) net->push_back(torch::nn::BatchNorm1d(64));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(64, 4));
  return net;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool norm) : layers(register_module("layers", make_net(norm))) {}
  at::Tensor forward(const at::Tensor& x) { return layers->forward(x); }
  torch::nn::Sequential layers;
};

void train(const std::string& setup) {
  acc::Accelerator accelerator(
      {.mixed_precision = setup == "bf16" ? acc::MixedPrecision::bf16 : acc::MixedPrecision::no,
       .ddp = {.gradient_as_bucket_view = setup == "views"}});
  acc::set_seed(11);
  const auto net = std::make_shared<NetImpl>(setup == "norm");
  acc::set_seed(12);
  const at::Tensor inputs = at::randn({640, 16});
  const at::Tensor targets = at::randint(4, {640}, at::TensorOptions(at::kLong));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  auto [model, optimizer, loader] = accelerator.prepare(
      net, std::move(sgd),
      acc::DataLoader(acc::TensorDataset(inputs, targets), {.batch_size = 16, .shuffle = true, .seed = 5}));

  std::string lines;
  int step = 0;
  for (auto& [x, y] : loader) {
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(model(x), y);
    accelerator.backward(loss);
    optimizer.step();
    char line[64];
    std::snprintf(line, sizeof line, "loss %d %d %.12g\n", accelerator.process_index(), step++,
                  loss.item<double>());
    lines += line;
  }
  std::fwrite(lines.data(), 1, lines.size(), stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  train(argc > 1 ? argv[1] : "plain");
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
