// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/init.h>

#include <cmath>
#include <map>

#include "acc/activation_checkpointing.hpp"
#include "acc/error.hpp"

namespace {

torch::nn::Linear without_bias(std::int64_t in, std::int64_t out) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
}

torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

// As one operator, as Python's Linear: LibTorch's adds the bias afterwards, and rounds twice in bf16.
torch::Tensor linear(const torch::nn::Linear& layer, const torch::Tensor& x) {
  return at::linear(x, layer->weight, layer->bias);
}

}  // namespace

GptOptions gpt_options(const std::string& size) {
  static const std::map<std::string, GptOptions> sizes = {
      {"nano", {.layers = 4, .width = 128, .heads = 4, .context = 64}},
      {"micro", {.layers = 6, .width = 256, .heads = 8, .context = 128}},
      {"mini", {.layers = 8, .width = 512, .heads = 8, .context = 256}},
      {"small", {.layers = 12, .width = 768, .heads = 12, .context = 512}},
  };
  if (const auto found = sizes.find(size); found != sizes.end()) return found->second;
  throw acc::Error({.what = "is not a size of GPT", .where = size, .hint = "nano, micro, mini or small"});
}

void BlockImpl::reset() {
  const std::int64_t width = options_.width;
  ln1_ = register_module("ln1", layer_norm(width));
  qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
  proj_ = register_module("proj", torch::nn::Linear(width, width));
  ln2_ = register_module("ln2", layer_norm(width));
  fc1_ = register_module("fc1", torch::nn::Linear(width, 4 * width));
  fc2_ = register_module("fc2", torch::nn::Linear(4 * width, width));
}

torch::Tensor BlockImpl::forward(torch::Tensor x) {
  const std::int64_t head = options_.width / options_.heads;
  // [3, n, heads, length, head]
  const torch::Tensor parts = linear(qkv_, ln1_->forward(x))
                                  .view({x.size(0), x.size(1), 3, options_.heads, head})
                                  .permute({2, 0, 3, 1, 4});
  const torch::Tensor attention = at::scaled_dot_product_attention(
      parts[0], parts[1], parts[2], /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
  x = x + linear(proj_, attention.transpose(1, 2).reshape(x.sizes()));
  return x + linear(fc2_, at::gelu(linear(fc1_, ln2_->forward(x))));
}

void GptImpl::reset() {
  token_ = register_module("token", torch::nn::Embedding(kBytes, options_.width));
  position_ = register_module("position", torch::nn::Embedding(options_.context, options_.width));
  blocks_ = register_module("blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options_.layers; ++i) blocks_->push_back(Block(options_));
  norm_ = register_module("norm", layer_norm(options_.width));
  head_ = register_module("head", without_bias(options_.width, kBytes));

  // GPT-2's first weights: those that are added to a block's input are smaller the more blocks there are.
  const double deep = 0.02 / std::sqrt(2.0 * static_cast<double>(options_.layers));
  const at::NoGradGuard no_grad;
  for (const auto& item : named_parameters()) {
    const std::string& name = item.key();
    if (name.ends_with(".bias")) torch::nn::init::zeros_(item.value());
    if (item.value().dim() < 2) continue;
    const bool is_added = name.ends_with("proj.weight") || name.ends_with("fc2.weight");
    torch::nn::init::normal_(item.value(), 0, is_added ? deep : 0.02);
  }
}

torch::Tensor GptImpl::forward(const torch::Tensor& bytes) {
  const torch::Tensor places = at::arange(bytes.size(1), bytes.options());
  torch::Tensor x = token_->forward(bytes) + position_->forward(places);
  for (const auto& module : *blocks_) {
    auto* block = module->as<BlockImpl>();
    x = checkpoints_ ? acc::checkpoint(block, x) : block->forward(x);
  }
  return linear(head_, norm_->forward(x));
}

torch::optim::AdamW gpt_optimizer(const Gpt& net, double lr, double weight_decay) {
  std::vector<torch::Tensor> matrices;
  std::vector<torch::Tensor> vectors;
  for (const torch::Tensor& parameter : net->parameters())
    (parameter.dim() > 1 ? matrices : vectors).push_back(parameter);
  const auto group = [&](const std::vector<torch::Tensor>& parameters, double decay) {
    const auto options = torch::optim::AdamWOptions(lr).betas({0.9, 0.95}).weight_decay(decay);
    return torch::optim::OptimizerParamGroup(parameters,
                                             std::make_unique<torch::optim::AdamWOptions>(options));
  };
  return torch::optim::AdamW({group(matrices, weight_decay), group(vectors, 0)});
}
