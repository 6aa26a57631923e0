// SPDX-License-Identifier: Apache-2.0
// train FOLDER SETUP...: 25 steps of a sharded model with fixed seeds; rank 0 writes the mean losses, and the
// norms of clipped gradients, to FOLDER/SETUP_PROCESSES. train.py does the same in Python.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"

namespace {

constexpr std::int64_t kWords = 64;
constexpr std::int64_t kWidth = 48;
constexpr int kBlocks = 4;
constexpr std::int64_t kLength = 12;

// LibTorch's module multiplies and then adds; Python's adds in the product.
at::Tensor linear(const torch::nn::Linear& layer, const at::Tensor& x) {
  return at::linear(x, layer->weight, layer->bias);
}

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        up(register_module("up", torch::nn::Linear(kWidth, 4 * kWidth))),
        down(register_module("down", torch::nn::Linear(4 * kWidth, kWidth))) {}
  at::Tensor forward(const at::Tensor& x) { return x + linear(down, at::gelu(linear(up, norm->forward(x)))); }
  torch::nn::LayerNorm norm;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl(bool tied, bool recomputes)
      : checkpoints(recomputes),
        words(register_module("words", torch::nn::Embedding(kWords, kWidth))),
        blocks(register_module("blocks", torch::nn::ModuleList())) {
    for (int i = 0; i < kBlocks; ++i) blocks->push_back(Block());
    if (!tied)
      out = register_module("out", torch::nn::Linear(torch::nn::LinearOptions(kWidth, kWords).bias(false)));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = words->forward(x);
    for (const auto& module : *blocks) {
      auto* block = module->as<BlockImpl>();
      y = checkpoints ? acc::checkpoint(block, y) : block->forward(y);
    }
    return out ? linear(out, y) : at::linear(y, words->weight);
  }
  bool checkpoints;
  torch::nn::Embedding words;
  torch::nn::ModuleList blocks;
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Net);

void set_values(torch::nn::Module& net, bool frozen) {
  const at::NoGradGuard no_grad;
  std::uint64_t seed = 0;
  for (const auto& item : net.named_parameters()) {
    acc::set_seed(seed++);
    const at::Tensor values = at::randn(item.value().sizes()) * 0.1;
    item.value().copy_(item.key().ends_with("norm.weight") ? values + 1 : values);
    if (frozen && (item.key().starts_with("blocks.1.") || item.key().ends_with("up.bias")))
      item.value().set_requires_grad(false);
  }
}

torch::optim::AdamW make_optimizer(const torch::nn::Module& net) {
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> others;
  for (const at::Tensor& one : net.parameters())
    if (one.requires_grad()) (one.dim() > 1 ? decayed : others).push_back(one);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](const std::vector<at::Tensor>& parameters, double decay) {
    groups.emplace_back(parameters, std::make_unique<torch::optim::AdamWOptions>(
                                        torch::optim::AdamWOptions(3e-4).weight_decay(decay)));
  };
  add(decayed, 0.1);
  add(others, 0);
  return torch::optim::AdamW(groups);
}

void train(const std::string& folder, const std::string& setup) {
  const auto has = [&](const std::string& word) {
    return ("_" + setup + "_").find("_" + word + "_") != std::string::npos;
  };
  const int batches = has("clip") ? 3 : 1;
  acc::Accelerator accelerator(
      {.mixed_precision = has("bf16") ? acc::MixedPrecision::bf16 : acc::MixedPrecision::no,
       .gradient_accumulation_steps = batches,
       .fsdp =
           acc::FsdpOptions{.reshard_after_forward = !has("stage2"), .transformer_cls_to_wrap = {"Block"}}});
  Net net(has("tied"), has("checkpoint"));
  set_values(*net, has("frozen"));
  auto [model, optimizer] = accelerator.prepare(net, make_optimizer(*net));
  std::vector<double> numbers;
  for (int step = 0; step < 25; ++step) {
    double total = 0;
    for (int batch = 0; batch < batches; ++batch) {
      const auto accumulation = accelerator.accumulate(model);
      acc::set_seed(
          static_cast<std::uint64_t>(1000 + (step * batches + batch) * 16 + accelerator.process_index()));
      const at::Tensor x =
          at::randint(0, kWords, {4, kLength}, at::TensorOptions(at::kLong)).to(accelerator.device());
      const at::Tensor y = (x * 7 + 3) % kWords;
      const at::Tensor loss = at::cross_entropy_loss(model(x).reshape({-1, kWords}), y.reshape({-1}));
      accelerator.backward(loss);
      total += (loss.detach() / batches).item<double>();
      if (has("clip") && accelerator.sync_gradients())
        numbers.push_back(accelerator.clip_grad_norm_(model->parameters(), 0.5).item<double>());
      optimizer.step();
      optimizer.zero_grad();
    }
    numbers.push_back(
        accelerator.reduce(at::full({}, total, at::kDouble), acc::ReduceOp::mean).item<double>());
  }
  if (!accelerator.is_main_process()) return;
  std::ofstream out(folder + "/" + setup + "_" + std::to_string(accelerator.num_processes()));
  for (const double number : numbers) {
    char line[32];
    std::snprintf(line, sizeof line, "%.12g\n", number);
    out << line;
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const acc::PartialState joined;
  for (int i = 2; i < argc; ++i) train(argv[1], argv[i]);
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
