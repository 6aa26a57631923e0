// SPDX-License-Identifier: Apache-2.0
// Written as a LibTorch user writes: with torch/torch.h, LibTorch's own modules, optimizers and data sets.
#include "acc/runtime/accelerator.hpp"

#include <torch/torch.h>

#include "acc/runtime/data/tensor_dataset.hpp"
#include "support/catch.hpp"

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() : fc(register_module("fc", torch::nn::Linear(2, 1))) {}
  torch::Tensor forward(torch::Tensor x) { return fc->forward(x); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);

}  // namespace

TEST_CASE("accelerator: without a launcher it is the only process", "[runtime]") {
  acc::Accelerator accelerator;
  CHECK(accelerator.num_processes() == 1);
  CHECK(accelerator.is_main_process());
  CHECK(accelerator.is_last_process());
  CHECK_FALSE(accelerator.distributed());
  CHECK(accelerator.gather(torch::tensor(3)).equal(torch::tensor({3})));
  accelerator.wait_for_everyone();
}

TEST_CASE("accelerator: prepare gives several things back in their order, and one alone", "[runtime]") {
  acc::Accelerator accelerator;
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [optimizer, model, loader] = accelerator.prepare(
      std::move(sgd), net, acc::DataLoader(acc::TensorDataset(torch::ones({4, 2})), {.batch_size = 2}));
  CHECK(accelerator.unwrap_model(model) == net.ptr());
  CHECK(optimizer.native().param_groups().size() == 1);
  CHECK(loader.size() == 2);
  const acc::Model<NetImpl> same = accelerator.prepare(std::make_shared<NetImpl>());
  CHECK(same->fc->weight.requires_grad());
}

TEST_CASE("accelerator: a LibTorch data set trains a LibTorch module", "[runtime]") {
  acc::set_seed(0);
  acc::Accelerator accelerator;
  const torch::Tensor x = torch::randn({32, 2});
  auto dataset = torch::data::datasets::TensorDataset(x).map(
      torch::data::transforms::Stack<torch::data::TensorExample>());
  Net net;
  auto [model, optimizer, loader] = accelerator.prepare(
      net, torch::optim::SGD(net->parameters(), 0.1), acc::DataLoader(std::move(dataset), {.batch_size = 8}));
  std::vector<double> losses;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = (model(batch.data) - 1).square().mean();
      accelerator.backward(loss);
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
  }
  CHECK(losses.back() < losses.front() / 2);
}
