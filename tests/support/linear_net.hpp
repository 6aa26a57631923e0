// SPDX-License-Identifier: Apache-2.0
// A linear network with what trains it, for tests of what an Accelerator prepares.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>

#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/data/tensor_batches.hpp"

namespace acc::test {

struct NetImpl : torch::nn::Module {
  NetImpl() : fc(register_module("fc", torch::nn::Linear(2, 1))) {}
  torch::Tensor forward(torch::Tensor x) { return fc->forward(x); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);

inline double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

/// `samples` of two ones each.
inline auto batches(std::int64_t samples, std::size_t batch_size) {
  return DataLoader(TensorDataset(torch::ones({samples, 2})), {.batch_size = batch_size});
}

}  // namespace acc::test
