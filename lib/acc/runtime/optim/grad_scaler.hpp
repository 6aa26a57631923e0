// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace acc {

/// The arguments of PyTorch 2.11's GradScaler, with its defaults.
struct GradScalerOptions {
  double init_scale = 65536;  ///< The first scale.
  /// The factor by which the scale grows after `growth_interval` consecutive steps without an overflow.
  double growth_factor = 2;
  /// The factor by which the scale shrinks after an overflow.
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< See growth_factor.
  bool enabled = true;                  ///< If false, nothing is scaled.
};

/// The entries of Python's GradScaler.state_dict().
struct GradScalerState {
  double scale = 0;                  ///< The current scale.
  double growth_factor = 0;          ///< As the option.
  double backoff_factor = 0;         ///< As the option.
  std::int64_t growth_interval = 0;  ///< As the option.
  std::int64_t growth_tracker = 0;   ///< Steps without an overflow since the last change.

  bool operator==(const GradScalerState&) const = default;
};

/// Scales losses so that small gradients do not vanish in fp16, and skips steps whose gradients overflowed:
/// torch.amp.GradScaler, with the same numbers. With several optimizers, gradients are divided by the scale
/// of their loss even if the scale has been updated since.
class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  /// The loss times the scale.
  at::Tensor scale(const at::Tensor& loss);

  /// To be called after the backward of the loss that was scaled last. Optimizers whose gradients were
  /// unscaled before it, and which it has given new ones, count as not unscaled.
  void after_backward();

  /// Divides the gradients of the optimizer's parameters by the scale and checks them for infinities; without
  /// gradients it does nothing. Throws Error{usage} when that has already been done since the last update,
  /// for fp16 gradients, and before the first `scale`.
  void unscale(torch::optim::Optimizer& optimizer);
  /// Whether `unscale` divided its gradients, and the optimizer has not stepped since.
  bool is_unscaled(const torch::optim::Optimizer& optimizer) const;

  /// Calls `unscale` if that has not been done, then steps the optimizer unless a gradient is infinite or
  /// NaN. Returns whether it stepped. Throws Error{usage} for a second step without `update`, and when there
  /// are no gradients.
  bool step(torch::optim::Optimizer& optimizer);

  /// Updates the scale according to the overflows in the steps since the last update. Throws Error{usage}
  /// when there was no step.
  void update();

  /// The current scale; 1 when not enabled.
  double get_scale() const;
  bool is_enabled() const;  ///< The option.

  GradScalerState state() const;                  ///< For checkpoints.
  void load_state(const GradScalerState& state);  ///< Continues from there.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
