// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"
#include "runtime/process.hpp"

/// What the cases of sharded models share: a model of blocks, its optimizer, and its batches. Each case has
/// an Accelerator of its own, so that any of them runs alone.
namespace sharded_stack {

using acc::test::caught_error;
using acc::test::here;
using acc::test::job_state;
using acc::test::rank;
using acc::test::size;

/// All parameters as one flat tensor on the CPU.
inline at::Tensor flat(const torch::nn::Module& module) {
  return acc::test::flat(module).cpu();
}

constexpr std::int64_t kWords = 24;
constexpr std::int64_t kWidth = 16;

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        up(register_module("up", torch::nn::Linear(kWidth, 2 * kWidth))),
        down(register_module("down", torch::nn::Linear(2 * kWidth, kWidth))) {}
  at::Tensor forward(const at::Tensor& x) {
    return x + down->forward(at::gelu(up->forward(norm->forward(x))));
  }

  torch::nn::LayerNorm norm;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(Block);

struct Shape {
  int blocks = 4;
  // The output has the embedding's weight.
  bool tied = false;
  // A block, and the bias in each block, are not trained.
  bool frozen = false;
  // Backward computes the blocks again.
  bool checkpoints = false;
};

struct StackImpl : torch::nn::Module {
  explicit StackImpl(Shape form = {}) : shape(form) {
    words = register_module("words", torch::nn::Embedding(kWords, kWidth));
    for (int i = 0; i < shape.blocks; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), Block()));
    if (!shape.tied) out = register_module("out", torch::nn::Linear(kWidth, kWords));
    if (!shape.frozen) return;
    for (const auto& item : named_parameters())
      if (item.key().starts_with("block1.") || item.key().ends_with("up.bias"))
        item.value().set_requires_grad(false);
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = words->forward(x);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (order.empty()) y = shape.checkpoints ? acc::checkpoint(blocks[i], y) : blocks[i]->forward(y);
      if (changes_block && i == 2) {
        const at::NoGradGuard no_grad;
        blocks[i]->up->weight.mul_(0.5);
      }
      if (throws_in_backward && i == 1)
        y.register_hook(
            [](const at::Tensor& /*gradient*/) -> at::Tensor { throw std::runtime_error("lost"); });
    }
    for (const int block : order) y = blocks[static_cast<std::size_t>(block)]->forward(y);
    return shape.tied ? at::linear(y, words->weight) : out->forward(y);
  }

  Shape shape;
  // Default: each once.
  std::vector<int> order = {};
  // Whether forward changes a parameter of the third block.
  bool changes_block = false;
  // Whether the next backward ends behind the second block.
  bool throws_in_backward = false;
  torch::nn::Embedding words{nullptr};
  std::vector<Block> blocks = {};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Stack);

inline acc::FsdpOptions stage(int number) {
  return {.reshard_after_forward = number == 3, .transformer_cls_to_wrap = {"Block"}};
}

inline acc::AcceleratorOptions sharded(int number, acc::AcceleratorOptions options = {}) {
  options.fsdp = stage(number);
  return options;
}

inline Stack seeded_stack(Shape shape = {}) {
  acc::set_seed(7);
  return Stack(shape);
}

/// One that is not prepared, on the device of those that are.
inline Stack whole_stack() {
  Stack net = seeded_stack();
  net->to(job_state().device());
  return net;
}

inline std::shared_ptr<torch::optim::Optimizer> adamw(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> others;
  for (const at::Tensor& one : parameters)
    if (one.requires_grad()) (one.dim() > 1 ? decayed : others).push_back(one);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(decayed, std::make_unique<torch::optim::AdamWOptions>(
                                   torch::optim::AdamWOptions(1e-2).weight_decay(0.1)));
  groups.emplace_back(
      others, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(1e-2).weight_decay(0)));
  return std::make_shared<torch::optim::AdamW>(groups);
}

inline at::Tensor batch_of(int step) {
  acc::set_seed(static_cast<std::uint64_t>(1000 + step * 16 + rank()));
  return at::randint(kWords, {3, 5}, at::TensorOptions(at::kLong)).to(job_state().device());
}

inline at::Tensor loss_of(const at::Tensor& out, const at::Tensor& x) {
  return at::cross_entropy_loss(out.reshape({-1, kWords}), ((x * 7 + 3) % kWords).reshape({-1}));
}

}  // namespace sharded_stack
