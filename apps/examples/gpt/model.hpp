// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <cstdint>
#include <string>

/// The sizes of a GPT.
struct GptOptions {
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  /// The longest text that it takes, in bytes.
  std::int64_t context = 64;
};

/// `nano` (0.9 million parameters), `micro` (4.9), `mini` (25.6) or `small` (85.8: the blocks of GPT-2
/// small). Throws acc::Error{usage} for another name.
GptOptions gpt_options(const std::string& size);

/// A block of GPT-2: attention to what came before, then a layer for each place alone, each added to its
/// input.
struct BlockImpl : torch::nn::Cloneable<BlockImpl> {
  explicit BlockImpl(const GptOptions& options) : options_(options) { reset(); }
  /// New parameters.
  void reset() override;
  torch::Tensor forward(torch::Tensor x);

 private:
  GptOptions options_;
  torch::nn::LayerNorm ln1_ = nullptr;
  torch::nn::Linear qkv_ = nullptr;
  torch::nn::Linear proj_ = nullptr;
  torch::nn::LayerNorm ln2_ = nullptr;
  torch::nn::Linear fc1_ = nullptr;
  torch::nn::Linear fc2_ = nullptr;
};
TORCH_MODULE(Block);

/// A transformer that predicts the next byte of a text, with the layers and first weights of GPT-2.
struct GptImpl : torch::nn::Cloneable<GptImpl> {
  static constexpr std::int64_t kBytes = 256;  ///< The values of a byte.

  explicit GptImpl(const GptOptions& options = {}) : options_(options) { reset(); }
  /// New parameters.
  void reset() override;

  /// Bytes as [n, length], with a length of at most the context; gives the scores of each next byte as
  /// [n, length, 256].
  torch::Tensor forward(const torch::Tensor& bytes);

  /// From now on backward computes the blocks again, which saves memory.
  void gradient_checkpointing_enable() { checkpoints_ = true; }

  const GptOptions& options() const { return options_; }

 private:
  GptOptions options_;
  bool checkpoints_ = false;
  torch::nn::Embedding token_ = nullptr;
  torch::nn::Embedding position_ = nullptr;
  torch::nn::ModuleList blocks_ = nullptr;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::nn::Linear head_ = nullptr;
};
TORCH_MODULE(Gpt);

/// AdamW with GPT-2's betas. Biases and the weights of norms do not decay.
torch::optim::AdamW gpt_optimizer(const Gpt& net, double lr, double weight_decay);
