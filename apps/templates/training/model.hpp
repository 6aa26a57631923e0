// SPDX-License-Identifier: Apache-2.0
// What is trained, and on what: yours go here.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

/// Points on the two arms of a spiral. A sample is a point and the number of its arm.
class Spirals {
 public:
  /// Data sets of another `shift`, between 0 and 1, have points between those of this one.
  explicit Spirals(std::size_t size, double shift = 0) : size_(size), shift_(shift) {}

  std::size_t size() const { return size_; }

  std::pair<at::Tensor, at::Tensor> get(std::size_t index) const {
    const auto arm = static_cast<std::int64_t>(index % 2);
    const double radius = (static_cast<double>(index) + shift_) / static_cast<double>(size_);
    const double angle = std::numbers::pi * (3 * radius + static_cast<double>(arm));
    return {torch::tensor({radius * std::cos(angle), radius * std::sin(angle)}, torch::kFloat),
            torch::tensor(arm)};
  }

 private:
  std::size_t size_;
  double shift_;
};

/// Two hidden layers. Its outputs are log-probabilities of the arms.
struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& points) {
    const at::Tensor hidden = torch::relu(second(torch::relu(first(points))));
    return torch::log_softmax(last(hidden), 1);
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 64));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(64, 64));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(64, 2));
};
TORCH_MODULE(Net);
