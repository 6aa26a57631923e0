// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace acc {

struct GradientAccumulationOptions {
  /// A loader's last batch ends with a step of the optimizer, and counting restarts.
  bool sync_with_dataloader = true;
  /// Averages the gradients over the processes in each batch, also where the optimizer does not step.
  bool sync_each_batch = false;
};

/// Counts batches and determines which of them end with a step of the optimizer, by the rule of
/// accelerate 1.15. Prepared optimizers and schedulers use it.
class GradientState {
 public:
  /// Throws Error{usage} when `num_steps` is below 1.
  explicit GradientState(int num_steps = 1, GradientAccumulationOptions options = {});

  /// A batch begins; `end_of_dataloader` when it is the last one of the loader that is being read.
  void next_batch(bool end_of_dataloader);

  /// Whether this batch ends with a step of the optimizer. Before the first: true.
  bool sync_gradients() const { return sync_gradients_; }
  void set_sync_gradients(bool on) { sync_gradients_ = on; }

  int num_steps() const { return num_steps_; }
  void set_num_steps(int num_steps);

  /// Batches counted so far.
  std::int64_t step() const { return step_; }
  void set_step(std::int64_t step) { step_ = step; }

  /// Continues after the `step`-th batch of a checkpoint, whose gradients are still accumulated.
  void resume(std::int64_t step) {
    step_ = step;
    sync_gradients_ = step % num_steps_ == 0;
  }

  const GradientAccumulationOptions& options() const { return options_; }

 private:
  int num_steps_ = 1;
  GradientAccumulationOptions options_;
  std::int64_t step_ = 0;
  bool sync_gradients_ = true;
};

/// Scales the gradients of `parameters` down to a total norm of at most `max_norm`, and returns their norm
/// before, a 0-d tensor: torch.nn.utils.clip_grad_norm_, with the same numbers and without waiting for a GPU.
/// A `norm_type` of infinity is the largest absolute value.
at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

/// Limits each gradient to [-clip_value, clip_value]: torch.nn.utils.clip_grad_value_.
void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace acc
