// SPDX-License-Identifier: Apache-2.0
#include "training_models.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <string>

#include "acc/base/error.hpp"
#include "acc/random.hpp"

namespace acc::bench {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;

struct Mlp : Network {
  at::Tensor forward(at::Tensor x) override {
    return out->forward(second->forward(first->forward(x).relu()).relu());
  }
  Linear first = register_module("first", Linear(784, 512));
  Linear second = register_module("second", Linear(512, 512));
  Linear out = register_module("out", Linear(512, 10));
};

struct Cnn : Network {
  at::Tensor forward(at::Tensor x) override {
    x = conv1->forward(x).relu();
    x = at::max_pool2d(conv2->forward(x).relu(), 2);
    return fc2->forward(fc1->forward(x.flatten(1)).relu());
  }
  Conv2d conv1 = register_module("conv1", Conv2d(Conv2dOptions(1, 16, 3)));
  Conv2d conv2 = register_module("conv2", Conv2d(Conv2dOptions(16, 32, 3)));
  Linear fc1 = register_module("fc1", Linear(32 * 12 * 12, 64));
  Linear fc2 = register_module("fc2", Linear(64, 10));
};

// 134 MB; with AdamW three times as much.
struct Wide : Network {
  Wide() {
    for (int i = 0; i < 2; ++i) layers->push_back(Linear(4096, 4096));
  }
  at::Tensor forward(at::Tensor x) override { return layers->forward(x); }
  torch::nn::Sequential layers = register_module("layers", torch::nn::Sequential());
};

// A layer of a Deep, and the unit in which that is sharded.
struct Layer : torch::nn::Module {
  static constexpr std::int64_t kWidth = 512;
  at::Tensor forward(const at::Tensor& x) { return x + down->forward(up->forward(norm->forward(x)).relu()); }
  torch::nn::LayerNorm norm =
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
  Linear up = register_module("up", Linear(kWidth, 4 * kWidth));
  Linear down = register_module("down", Linear(4 * kWidth, kWidth));
};

// 101 MB in twelve layers.
struct Deep : Network {
  Deep() {
    for (int i = 0; i < 12; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), std::make_shared<Layer>()));
    out = register_module("out", Linear(Layer::kWidth, 10));
  }
  at::Tensor forward(at::Tensor x) override {
    for (const auto& layer : layers) x = layer->forward(x);
    return out->forward(x);
  }
  std::vector<std::shared_ptr<Layer>> layers = {};
  Linear out = nullptr;
};

Conv2dOptions convolution(std::int64_t in, std::int64_t out, std::int64_t side, std::int64_t stride) {
  return Conv2dOptions(in, out, side).stride(stride).padding(side / 2).bias(false);
}

struct Block : torch::nn::Module {
  Block(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", Conv2d(convolution(in, out, 3, stride)))),
        bn1(register_module("bn1", BatchNorm2d(out))),
        conv2(register_module("conv2", Conv2d(convolution(out, out, 3, 1)))),
        bn2(register_module("bn2", BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    shortcut->push_back(Conv2d(convolution(in, out, 1, stride)));
    shortcut->push_back(BatchNorm2d(out));
    register_module("shortcut", shortcut);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inner = bn2->forward(conv2->forward(bn1->forward(conv1->forward(x)).relu_()));
    return (inner + (shortcut->is_empty() ? x : shortcut->forward(x))).relu_();
  }
  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  torch::nn::Sequential shortcut = {};
};

struct ResNet18 : Network {
  ResNet18() {
    constexpr std::int64_t kWidths[] = {64, 128, 256, 512};
    std::int64_t in = 64;
    for (const std::int64_t out : kWidths) {
      blocks->push_back(Block(in, out, in == out ? 1 : 2));
      blocks->push_back(Block(out, out, 1));
      in = out;
    }
    register_module("blocks", blocks);
    fc = register_module("fc", Linear(512, 10));
  }
  at::Tensor forward(at::Tensor x) override {
    x = at::max_pool2d(bn1->forward(conv1->forward(x)).relu_(), 3, 2, 1);
    return fc->forward(blocks->forward(x).mean({2, 3}));
  }
  Conv2d conv1 = register_module("conv1", Conv2d(convolution(3, 64, 7, 2)));
  BatchNorm2d bn1 = register_module("bn1", BatchNorm2d(64));
  torch::nn::Sequential blocks = {};
  Linear fc = nullptr;
};

// One block, which tells the next word at each position of a text.
struct Transformer : Network {
  static constexpr std::int64_t kWords = 256;
  static constexpr std::int64_t kWidth = 128;
  static constexpr std::int64_t kHeads = 4;

  at::Tensor forward(at::Tensor text) override {
    const std::int64_t batch = text.size(0);
    const std::int64_t length = text.size(1);
    at::Tensor x = words->forward(text) + positions->forward(at::arange(length, text.options()));
    const at::Tensor all = qkv->forward(norm1->forward(x))
                               .view({batch, length, 3, kHeads, kWidth / kHeads})
                               .permute({2, 0, 3, 1, 4});
    const at::Tensor scores = all[0].matmul(all[1].transpose(-2, -1)) / std::sqrt(double(kWidth) / kHeads);
    const at::Tensor later = at::ones({length, length}, text.options().dtype(at::kBool)).triu(1);
    const at::Tensor mixed = scores.masked_fill(later, -1e9).softmax(-1).matmul(all[2]);
    x = x + out->forward(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
    return head->forward(x + down->forward(up->forward(norm2->forward(x)).relu()));
  }

  using Embedding = torch::nn::Embedding;
  using LayerNorm = torch::nn::LayerNorm;
  Embedding words = register_module("words", Embedding(kWords, kWidth));
  Embedding positions = register_module("positions", Embedding(kWords, kWidth));
  LayerNorm norm1 = register_module("norm1", LayerNorm(torch::nn::LayerNormOptions({kWidth})));
  Linear qkv = register_module("qkv", Linear(kWidth, 3 * kWidth));
  Linear out = register_module("out", Linear(kWidth, kWidth));
  LayerNorm norm2 = register_module("norm2", LayerNorm(torch::nn::LayerNormOptions({kWidth})));
  Linear up = register_module("up", Linear(kWidth, 4 * kWidth));
  Linear down = register_module("down", Linear(4 * kWidth, kWidth));
  Linear head = register_module("head", Linear(kWidth, kWords));
};

}  // namespace

Workload make_workload(const std::string& name) {
  if (name == "mlp") return {.network = std::make_shared<Mlp>(), .input = {64, 784}, .steps = 60};
  if (name == "cnn") return {.network = std::make_shared<Cnn>(), .input = {32, 1, 28, 28}, .steps = 20};
  if (name == "resnet18")
    return {.network = std::make_shared<ResNet18>(), .input = {4, 3, 64, 64}, .steps = 4};
  if (name == "deep") return {.network = std::make_shared<Deep>(), .input = {64, Layer::kWidth}, .steps = 2};
  if (name == "wide") return {.network = std::make_shared<Wide>(), .input = {1, 4096}};
  throw Error({.what = "is not mlp, cnn, resnet18, deep or wide", .where = name});
}

TrainerWorkload make_trainer_workload(const std::string& name) {
  set_seed(1);
  TrainerWorkload made;
  if (name == "mlp") {
    made.network = std::make_shared<Mlp>();
    made.inputs = at::randn({4096, 784});
  } else if (name == "cnn") {
    made.network = std::make_shared<Cnn>();
    made.inputs = at::randn({1024, 1, 28, 28});
  } else if (name == "transformer") {
    made.network = std::make_shared<Transformer>();
    const at::Tensor text = at::randint(Transformer::kWords, {512, 65}, at::kLong);
    made.inputs = text.narrow(1, 0, 64).contiguous();
    made.labels = text.narrow(1, 1, 64).contiguous();
    made.batch_size = 16;
    return made;
  } else {
    throw Error({.what = "is not mlp, cnn or transformer", .where = name});
  }
  made.labels = at::randint(10, {made.inputs.size(0)}, at::kLong);
  return made;
}

}  // namespace acc::bench
