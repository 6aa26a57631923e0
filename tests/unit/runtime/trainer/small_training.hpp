// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>

#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"
#include "support/temporary_folder.hpp"

namespace acc::test {

/// A linear model of two inputs.
struct LineImpl : torch::nn::Module {
  LineImpl() : fc(register_module("fc", torch::nn::Linear(2, 1))) {}
  torch::Tensor forward(torch::Tensor x) { return fc(x).squeeze(1); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Line);

/// A Line whose parameters are 0.
inline Line zeros() {
  const at::NoGradGuard no_grad;
  Line line;
  for (const at::Tensor& parameter : line->parameters()) parameter.zero_();
  return line;
}

/// Points with y = x0 + 2 x1, which a Line can learn.
inline TensorDataset<2> points(std::int64_t size) {
  const at::Tensor x = torch::arange(2 * size).remainder(7).view({size, 2}).to(torch::kFloat) / 7;
  return TensorDataset(x, x.select(1, 0) + 2 * x.select(1, 1));
}

/// Ten points in each pass, others in the next.
struct Stream {
  std::uint64_t epoch = 0;
  int at = 0;

  void set_epoch(std::uint64_t next) { epoch = next; }
  void reset() { at = 0; }
  std::optional<std::tuple<at::Tensor, at::Tensor>> next() {
    if (at == 10) return std::nullopt;
    const at::Tensor x = torch::full({2}, std::sin(double(++at) + 13 * double(epoch)));
    return std::tuple{x, x[0]};
  }
};

/// Arguments of a training that writes only to `folder`, and no checkpoints.
inline TrainingArguments quick_arguments(const TemporaryFolder& folder) {
  TrainingArguments arguments;
  arguments.output_dir = folder.path() / "run";
  arguments.learning_rate = 0.05;
  arguments.per_device_train_batch_size = 4;
  arguments.save_strategy = SaveStrategy::no;
  arguments.disable_tqdm = true;
  return arguments;
}

}  // namespace acc::test
