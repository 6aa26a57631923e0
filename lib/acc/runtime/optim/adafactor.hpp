// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/optim/custom_optimizer.hpp"

namespace acc {

/// The options of transformers' Adafactor for a given learning rate: without relative_step, scale_parameter
/// and warmup_init.
struct AdafactorOptions : torch::optim::OptimizerCloneableOptions<AdafactorOptions> {
  using Eps = std::tuple<double, double>;  ///< See eps.

  AdafactorOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT: implicit, as LibTorch's
  double get_lr() const override { return lr(); }  ///< LibTorch's.
  void set_lr(double lr) override { lr_ = lr; }    ///< LibTorch's.

  TORCH_ARG(double, lr);
  /// The first is added to squared gradients; the second is for scale_parameter.
  TORCH_ARG(Eps, eps) = { 1e-30, 1e-3 };
  TORCH_ARG(double, clip_threshold) = 1;  ///< The maximum root mean square of an update.
  TORCH_ARG(double, decay_rate) = -0.8;   ///< The exponent of the step in the decay of squared gradients.
  TORCH_ARG(std::optional<double>, beta1) = {};  ///< Of the mean of updates; none: there is no mean.
  TORCH_ARG(double, weight_decay) = 0;           ///< Decoupled, as AdamW's.
};

/// What Adafactor knows of a parameter.
struct AdafactorParamState : torch::optim::OptimizerCloneableParamState<AdafactorParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg) = {};         ///< Undefined without beta1.
  TORCH_ARG(at::Tensor, exp_avg_sq) = {};      ///< Of a parameter with less than two dimensions.
  TORCH_ARG(at::Tensor, exp_avg_sq_row) = {};  ///< Of others: without the last dimension.
  TORCH_ARG(at::Tensor, exp_avg_sq_col) = {};  ///< Of others: without the one before it.
  TORCH_ARG(at::Tensor, rms) = {};             ///< The parameter's root mean square.
};

/// transformers 5.23's Adafactor: of the squared gradients of a matrix it keeps the means of rows and of
/// columns.
class Adafactor : public detail::CustomOptimizer {
 public:
  explicit Adafactor(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                     const AdafactorOptions& defaults = {})
      : CustomOptimizer(groups, std::make_unique<AdafactorOptions>(defaults)) {}
  explicit Adafactor(std::vector<at::Tensor> parameters, const AdafactorOptions& defaults = {})
      : Adafactor({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  /// Throws Error{usage} for a sparse gradient.
  at::Tensor step(LossClosure closure = nullptr) override;

 private:
  AdafactorParamState& state_of(const at::Tensor& parameter);
};

}  // namespace acc
