// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/meta_device.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <thread>

#include "support/catch.hpp"

namespace meta_device_test {

TEST_CASE("meta device: modules are made without memory", "[runtime]") {
  const auto model = [] {
    const acc::MetaDevice meta;
    // 4 TB of parameters.
    return torch::nn::Sequential(torch::nn::Embedding(1'000'000, 1'000'000), torch::nn::Linear(8, 4),
                                 torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4),
                                 torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                                 torch::nn::LSTM(4, 4));
  }();
  for (const at::Tensor& parameter : model->parameters()) CHECK(parameter.is_meta());
  for (const at::Tensor& buffer : model->buffers()) CHECK(buffer.is_meta());
  CHECK(model->parameters().front().requires_grad());
  CHECK_FALSE(at::zeros({1}).is_meta());
}

TEST_CASE("meta device: what names a device is there, also within each other, and in other threads",
          "[runtime]") {
  const acc::MetaDevice meta;
  CHECK(at::empty({1}, at::kCPU).is_cpu());
  CHECK(at::tensor({1.0F, 2.0F}, at::TensorOptions(at::kCPU).dtype(at::kFloat)).sum().item<double>() == 3);
  {
    const acc::MetaDevice inner;
  }
  CHECK(at::randn({2}).is_meta());
  bool in_thread = true;
  std::thread([&] { in_thread = at::zeros({1}).is_meta(); }).join();
  CHECK_FALSE(in_thread);
}

}  // namespace meta_device_test
