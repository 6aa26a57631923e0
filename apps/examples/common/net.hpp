// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

/// The network of PyTorch's MNIST example, which every step of the tutorial trains: two convolutions, pooling
/// and two linear layers, with dropout.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  /// For square images; by default MNIST's.
  explicit NetImpl(std::int64_t channels = 1, std::int64_t side = 28);
  /// New parameters.
  void reset() override;

  /// Images as [n, channels, side, side]; gives the log-probabilities of ten classes.
  torch::Tensor forward(torch::Tensor images);

  std::int64_t channels;
  std::int64_t side;
  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::Conv2d conv2 = nullptr;
  torch::nn::Dropout dropout1 = nullptr;
  torch::nn::Linear fc1 = nullptr;
  torch::nn::Dropout dropout2 = nullptr;
  torch::nn::Linear fc2 = nullptr;
};
TORCH_MODULE(Net);
