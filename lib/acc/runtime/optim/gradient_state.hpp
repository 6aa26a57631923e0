// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace acc {

struct GradientAccumulationOptions {
  /// A loader's last batch ends with a step of the optimizer, and the count begins anew.
  bool sync_with_dataloader = true;
  /// Averages the gradients over the processes in each batch, also where the optimizer does not step.
  bool sync_each_batch = false;
};

/// Counts batches and tells which of them end with a step of the optimizer, by the rule of accelerate 1.15.
/// Optimizers and schedulers that were prepared ask it.
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

  /// Goes on after the batch that was the `step`-th, as saved: gradients that it left are still to be used.
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

}  // namespace acc
