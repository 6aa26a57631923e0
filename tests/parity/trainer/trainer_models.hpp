// SPDX-License-Identifier: Apache-2.0
// The models of trainer_peer.py, with the same names of parameters.
#pragma once

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <new>

struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(int inputs) {
    fc1 = register_module("fc1", torch::nn::Linear(inputs, 128));
    fc2 = register_module("fc2", torch::nn::Linear(128, 10));
  }
  at::Tensor forward(const at::Tensor& images) { return fc2(fc1(images.flatten(1)).relu()); }

  torch::nn::Linear fc1 = nullptr;
  torch::nn::Linear fc2 = nullptr;
};
TORCH_MODULE(Mlp);

// An Mlp with memory for ten rows.
struct HungryImpl : MlpImpl {
  using MlpImpl::MlpImpl;
  at::Tensor forward(const at::Tensor& images) {
    if (is_training() && images.size(0) > 10) throw std::bad_alloc();
    return MlpImpl::forward(images);
  }
};
TORCH_MODULE(Hungry);

struct CnnImpl : torch::nn::Module {
  CnnImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)));
    conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).padding(1)));
    fc = register_module("fc", torch::nn::Linear(16 * 49, 10));
  }
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = at::max_pool2d(conv1(images).relu(), 2);
    x = at::max_pool2d(conv2(x).relu(), 2);
    return fc(x.flatten(1));
  }

  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::Conv2d conv2 = nullptr;
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(Cnn);

// A transformer with one block, which predicts the next word at each position.
struct TransformerImpl : torch::nn::Module {
  static constexpr int kWords = 64;
  static constexpr int kWidth = 32;
  static constexpr int kHeads = 4;

  TransformerImpl() {
    words = register_module("words", torch::nn::Embedding(kWords, kWidth));
    positions = register_module("positions", torch::nn::Embedding(kWords, kWidth));
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", torch::nn::Linear(kWidth, kWidth));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    up = register_module("up", torch::nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", torch::nn::Linear(4 * kWidth, kWidth));
    head = register_module("head", torch::nn::Linear(kWidth, kWords));
  }
  at::Tensor forward(const at::Tensor& text) {
    const auto batch = text.size(0);
    const auto length = text.size(1);
    at::Tensor x = words(text) + positions(at::arange(length));
    const at::Tensor all =
        qkv(norm1(x)).view({batch, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    at::Tensor scores = all[0].matmul(all[1].transpose(-2, -1)) / std::sqrt(double(kWidth) / kHeads);
    const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
    const at::Tensor mixed = scores.masked_fill(later, -1e9).softmax(-1).matmul(all[2]);
    x = x + out(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
    return head(x + down(up(norm2(x)).relu()));
  }

  torch::nn::Embedding words = nullptr;
  torch::nn::Embedding positions = nullptr;
  torch::nn::LayerNorm norm1 = nullptr;
  torch::nn::Linear qkv = nullptr;
  torch::nn::Linear out = nullptr;
  torch::nn::LayerNorm norm2 = nullptr;
  torch::nn::Linear up = nullptr;
  torch::nn::Linear down = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Transformer);
