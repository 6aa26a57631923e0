// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace acc {

/// accelerate's GradientAccumulationPlugin.
struct GradientAccumulationOptions {
  /// The last batch of a loader always ends with a step of the optimizer; the count then restarts.
  bool sync_with_dataloader = true;
  /// Averages gradients over the processes in every batch, even if the optimizer does not step.
  bool sync_each_batch = false;
};

/// Counts batches and determines which of them end with a step of the optimizer, by the rule of
/// accelerate 1.15. Prepared optimizers and schedulers use it.
class GradientState {
 public:
  /// Throws Error{usage} when `num_steps` is below 1.
  explicit GradientState(int num_steps = 1, GradientAccumulationOptions options = {});

  /// To be called when a batch begins. `end_of_dataloader`: it is the last batch of the loader that is being
  /// read.
  void next_batch(bool end_of_dataloader);

  /// Whether this batch ends with a step of the optimizer. True before the first batch.
  bool sync_gradients() const { return sync_gradients_; }
  void set_sync_gradients(bool on) { sync_gradients_ = on; }  ///< Overrides it until the next batch begins.

  int num_steps() const { return num_steps_; }  ///< The number of batches for a step.
  void set_num_steps(int num_steps);            ///< Throws Error{usage} for a number below 1.

  /// The number of batches counted so far.
  std::int64_t step() const { return step_; }
  void set_step(std::int64_t step) { step_ = step; }  ///< Continues counting from there.

  /// Continues after the `step`-th batch of a checkpoint, whose gradients are still accumulated.
  void resume(std::int64_t step) {
    step_ = step;
    sync_gradients_ = step % num_steps_ == 0;
  }

  const GradientAccumulationOptions& options() const { return options_; }  ///< As constructed.

 private:
  int num_steps_ = 1;
  GradientAccumulationOptions options_;
  std::int64_t step_ = 0;
  bool sync_gradients_ = true;
};

/// Scales the gradients of `parameters` down to a total norm of at most `max_norm`, and returns their norm
/// before that, a 0-dimensional tensor. Gives the same numbers as torch.nn.utils.clip_grad_norm_, and does
/// not wait for a GPU. With a `norm_type` of infinity the norm is the largest absolute value. Throws
/// Error{usage} for parameters of a sharded model, whose norm no process knows alone.
at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

/// Clamps each gradient element to [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_. Throws
/// Error{usage} for complex gradients.
void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace acc
