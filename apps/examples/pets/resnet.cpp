// SPDX-License-Identifier: Apache-2.0
#include "resnet.hpp"

#include <ATen/ops/max_pool2d.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/pooling.h>

#include <array>

#include "acc/error.hpp"

namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Sequential;

constexpr std::int64_t kStemWidth = 32;
constexpr std::int64_t kExpansion = 4;

Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t side, std::int64_t stride = 1) {
  return Conv2d(torch::nn::Conv2dOptions(in, out, side).stride(stride).padding(side / 2).bias(false));
}

torch::nn::ReLU relu() {
  return torch::nn::ReLU(torch::nn::ReLUOptions(/*inplace=*/true));
}

Sequential stem() {
  return Sequential(convolution(3, kStemWidth, 3, 2), BatchNorm2d(kStemWidth), relu(),
                    convolution(kStemWidth, kStemWidth, 3), BatchNorm2d(kStemWidth), relu(),
                    convolution(kStemWidth, 2 * kStemWidth, 3));
}

// Its first module has no parameters, but a place in the names of the others.
Sequential shortcut(std::int64_t in, std::int64_t out, std::int64_t stride) {
  Sequential modules;
  if (stride == 1) {
    modules->push_back(torch::nn::Identity());
  } else {
    modules->push_back(torch::nn::AvgPool2d(
        torch::nn::AvgPool2dOptions(2).stride(stride).ceil_mode(true).count_include_pad(false)));
  }
  modules->push_back(convolution(in, out, 1));
  modules->push_back(BatchNorm2d(out));
  return modules;
}

Sequential stage(std::int64_t in, std::int64_t planes, std::int64_t blocks, std::int64_t stride) {
  Sequential modules(Bottleneck(in, planes, stride));
  for (std::int64_t block = 1; block < blocks; ++block)
    modules->push_back(Bottleneck(kExpansion * planes, planes, 1));
  return modules;
}

std::array<std::int64_t, 4> blocks_of(const std::string& architecture) {
  if (architecture == "resnet26d") return {2, 2, 2, 2};
  if (architecture == "resnet50d") return {3, 4, 6, 3};
  throw acc::Error({.what = "is not an architecture of this program",
                    .where = architecture,
                    .hint = "use resnet26d or resnet50d"});
}

}  // namespace

BottleneckImpl::BottleneckImpl(std::int64_t in_channels, std::int64_t planes, std::int64_t stride) {
  const std::int64_t out_channels = kExpansion * planes;
  conv1 = register_module("conv1", convolution(in_channels, planes, 1));
  bn1 = register_module("bn1", BatchNorm2d(planes));
  conv2 = register_module("conv2", convolution(planes, planes, 3, stride));
  bn2 = register_module("bn2", BatchNorm2d(planes));
  conv3 = register_module("conv3", convolution(planes, out_channels, 1));
  bn3 = register_module("bn3", BatchNorm2d(out_channels));
  if (stride != 1 || in_channels != out_channels)
    downsample = register_module("downsample", shortcut(in_channels, out_channels, stride));
}

torch::Tensor BottleneckImpl::forward(const torch::Tensor& input) {
  torch::Tensor x = bn1->forward(conv1->forward(input)).relu_();
  x = bn2->forward(conv2->forward(x)).relu_();
  x = bn3->forward(conv3->forward(x));
  x += downsample ? downsample->forward(input) : input;
  return x.relu_();
}

ResNetDImpl::ResNetDImpl(const std::string& architecture, std::int64_t num_classes) {
  const std::array<std::int64_t, 4> blocks = blocks_of(architecture);
  conv1 = register_module("conv1", stem());
  bn1 = register_module("bn1", BatchNorm2d(2 * kStemWidth));
  layer1 = register_module("layer1", stage(64, 64, blocks[0], 1));
  layer2 = register_module("layer2", stage(256, 128, blocks[1], 2));
  layer3 = register_module("layer3", stage(512, 256, blocks[2], 2));
  layer4 = register_module("layer4", stage(1024, 512, blocks[3], 2));
  fc = register_module("fc", torch::nn::Linear(2048, num_classes));
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* layer = module->as<torch::nn::Conv2d>())
      torch::nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
    // A block begins as its shortcut.
    if (const auto* block = module->as<Bottleneck>()) torch::nn::init::zeros_(block->bn3->weight);
  }
}

torch::Tensor ResNetDImpl::forward(torch::Tensor images) {
  images = bn1->forward(conv1->forward(images)).relu_();
  images = at::max_pool2d(images, 3, 2, 1);
  images = layer4->forward(layer3->forward(layer2->forward(layer1->forward(images))));
  return fc->forward(images.mean({2, 3}));
}

void ResNetDImpl::train_encoder(bool on) {
  for (torch::Tensor& parameter : parameters()) parameter.set_requires_grad(on);
  for (torch::Tensor& parameter : fc->parameters()) parameter.set_requires_grad(true);
}
