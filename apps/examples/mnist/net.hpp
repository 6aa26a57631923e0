// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

/// Two convolutions, one pooling, two linear layers: the network of every tour.
struct NetImpl : torch::nn::Module {
  NetImpl();

  /// Images as [n, 1, 28, 28]; gives the log-probabilities of the ten digits.
  torch::Tensor forward(torch::Tensor images);

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};
TORCH_MODULE(Net);
