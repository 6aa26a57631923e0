// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace acc {

/// Defaults of PyTorch 2.11's GradScaler.
struct GradScalerOptions {
  double init_scale = 65536;
  /// The scale is multiplied by this after `growth_interval` steps in a row without an overflow, ...
  double growth_factor = 2;
  /// ... and by this after each overflow.
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool enabled = true;
};

/// The entries of Python's GradScaler.state_dict().
struct GradScalerState {
  double scale = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int64_t growth_interval = 0;
  std::int64_t growth_tracker = 0;

  bool operator==(const GradScalerState&) const = default;
};

/// Multiplies losses, so that small gradients survive in fp16, and leaves out steps whose gradients
/// overflowed: torch.amp.GradScaler, with the same numbers. Several optimizers may be updated one by one:
/// gradients are divided by the scale of their loss, even if the scale has changed since.
class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  /// The loss times the scale.
  at::Tensor scale(const at::Tensor& loss);

  /// Divides the gradients of the optimizer's parameters by the scale and looks for infinities. Throws
  /// Error{usage} when that was done since the last update, for gradients that are fp16 themselves, and
  /// before the first `scale`.
  void unscale(torch::optim::Optimizer& optimizer);
  bool is_unscaled(const torch::optim::Optimizer& optimizer) const;

  /// Calls `unscale` if that is still to do, then steps unless a gradient is infinite or NaN; false: not
  /// stepped. Throws Error{usage} for a second step without `update`, and when there are no gradients.
  bool step(torch::optim::Optimizer& optimizer);

  /// Sets the scale for the next batch from the overflows of the steps since the last update. Throws
  /// Error{usage} when there was none.
  void update();

  /// 1 when it is not enabled.
  double get_scale() const;
  bool is_enabled() const;

  GradScalerState state() const;
  void load_state(const GradScalerState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
