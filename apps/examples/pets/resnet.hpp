// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>

/// A residual block of three convolutions; the 3 x 3 in the middle has the stride.
struct BottleneckImpl : torch::nn::Module {
  /// Gives 4 * `planes` channels.
  BottleneckImpl(std::int64_t in_channels, std::int64_t planes, std::int64_t stride);
  torch::Tensor forward(const torch::Tensor& input);

  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr;
  torch::nn::Conv2d conv2 = nullptr;
  torch::nn::BatchNorm2d bn2 = nullptr;
  torch::nn::Conv2d conv3 = nullptr;
  torch::nn::BatchNorm2d bn3 = nullptr;
  /// Empty where the input already has the output's shape.
  torch::nn::Sequential downsample = nullptr;
};
TORCH_MODULE(Bottleneck);

/// timm's ResNet-D, with its names of parameters and its initial weights: a stem of three convolutions, and
/// average pooling before the convolution of a shortcut.
struct ResNetDImpl : torch::nn::Module {
  /// `architecture` is resnet26d or resnet50d. Throws acc::Error{usage} for another one.
  ResNetDImpl(const std::string& architecture, std::int64_t num_classes);

  /// Images as [n, 3, height, width], normalised; gives the logits [n, num_classes].
  torch::Tensor forward(torch::Tensor images);

  /// Whether the parameters of all layers but the classifier, `fc`, are trained.
  void train_encoder(bool on);

  torch::nn::Sequential conv1 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr;
  torch::nn::Sequential layer1 = nullptr;
  torch::nn::Sequential layer2 = nullptr;
  torch::nn::Sequential layer3 = nullptr;
  torch::nn::Sequential layer4 = nullptr;
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(ResNetD);
