// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace acc::bench {

/// A network and what it is fed, the same as in training_peer.py: with one seed both start from the same
/// numbers.
class Network : public torch::nn::Module {
 public:
  virtual at::Tensor forward(at::Tensor x) = 0;
};

struct Workload {
  std::shared_ptr<Network> network = {};
  std::vector<std::int64_t> input = {};
  /// Steps per round: some tenths of a second.
  int steps = 1;
};

/// `mlp`, `cnn`, `resnet18`, `deep`, and in C++ alone `wide`.
Workload make_workload(const std::string& name);

/// What a Trainer trains in a round, one epoch of the samples.
struct TrainerWorkload {
  std::shared_ptr<Network> network = {};
  at::Tensor inputs = {};
  at::Tensor labels = {};
  int batch_size = 32;
};

/// `mlp`, `cnn` or `transformer`; the same numbers on every call.
TrainerWorkload make_trainer_workload(const std::string& name);

}  // namespace acc::bench
