// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/optim/custom_optimizer.hpp"

namespace acc {

/// The options of PyTorch's Muon.
struct MuonOptions : torch::optim::OptimizerCloneableOptions<MuonOptions> {
  using Coefficients = std::tuple<double, double, double>;  ///< See ns_coefficients.

  MuonOptions(double lr = 1e-3) : lr_(lr) {}       // NOLINT: implicit, as LibTorch's
  double get_lr() const override { return lr(); }  ///< LibTorch's.
  void set_lr(double lr) override { lr_ = lr; }    ///< LibTorch's.

  TORCH_ARG(double, lr);
  TORCH_ARG(double, weight_decay) = 0.1;  ///< Decoupled, as AdamW's.
  TORCH_ARG(double, momentum) = 0.95;
  TORCH_ARG(bool, nesterov) = true;
  /// Of the polynomial of the Newton-Schulz iteration.
  TORCH_ARG(Coefficients, ns_coefficients) = { 3.4445, -4.7750, 2.0315 };
  TORCH_ARG(double, eps) = 1e-7;          ///< The minimum norm by which an update is divided.
  TORCH_ARG(std::int64_t, ns_steps) = 5;  ///< The number of iterations.
  /// How the rate follows from a matrix's shape: original, which is the default, or match_rms_adamw.
  TORCH_ARG(std::optional<std::string>, adjust_lr_fn) = {};
};

/// What Muon knows of a parameter.
struct MuonParamState : torch::optim::OptimizerCloneableParamState<MuonParamState> {
  TORCH_ARG(at::Tensor, momentum_buffer) = {};  ///< The mean of gradients.
};

/// PyTorch 2.11's Muon, for the matrices of hidden layers: steps by the orthogonalized mean of gradients.
class Muon : public detail::CustomOptimizer {
 public:
  /// Throws Error{usage} for a parameter that is not a matrix.
  explicit Muon(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                const MuonOptions& defaults = {});
  explicit Muon(std::vector<at::Tensor> parameters, const MuonOptions& defaults = {})
      : Muon({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  /// Throws Error{usage} for a sparse gradient, and for an adjust_lr_fn that it does not know.
  at::Tensor step(LossClosure closure = nullptr) override;

 private:
  MuonParamState& state_of(const at::Tensor& parameter);
};

}  // namespace acc
