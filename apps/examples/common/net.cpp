// SPDX-License-Identifier: Apache-2.0
#include "net.hpp"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>

namespace {

// Two convolutions of 3 by 3 take two pixels each, then pooling halves what is left.
std::int64_t pooled(std::int64_t side) {
  return (side - 4) / 2;
}

}  // namespace

NetImpl::NetImpl(std::int64_t its_channels, std::int64_t its_side) : channels(its_channels), side(its_side) {
  reset();
}

void NetImpl::reset() {
  conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 32, 3)));
  conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)));
  dropout1 = register_module("dropout1", torch::nn::Dropout(0.25));
  fc1 = register_module("fc1", torch::nn::Linear(64 * pooled(side) * pooled(side), 128));
  dropout2 = register_module("dropout2", torch::nn::Dropout(0.5));
  fc2 = register_module("fc2", torch::nn::Linear(128, 10));
}

torch::Tensor NetImpl::forward(torch::Tensor images) {
  images = conv1->forward(images).relu();
  images = at::max_pool2d(conv2->forward(images).relu(), 2);
  images = fc1->forward(dropout1->forward(images).flatten(1)).relu();
  return at::log_softmax(fc2->forward(dropout2->forward(images)), 1);
}
