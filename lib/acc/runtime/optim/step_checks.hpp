// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace acc {

class DdpReplica;

struct StepCheckOptions {
  /// Optimizers may hold parameters of no prepared model.
  bool allow_unprepared_parameters = false;
  /// After so many steps of an optimizer the models' values are compared; 0: never.
  int check_parameters_every = 0;
};

/// What an Accelerator of several processes looks at around the steps of its optimizers, so that processes
/// do not drift apart without a word.
class StepChecks {
 public:
  explicit StepChecks(StepCheckOptions options) : options_(options) {}

  void add_model(std::shared_ptr<DdpReplica> model) { models_.push_back(std::move(model)); }

  /// From now on nothing is checked: the models are no longer the Accelerator's.
  void release() {
    models_.clear();
    options_ = {.allow_unprepared_parameters = true};
  }

  /// Throws Error{usage} when the optimizer holds parameters whose gradients nobody averages.
  void require_prepared(const torch::optim::Optimizer& optimizer) const;

  /// Throws Error{usage} when gradients that were not averaged reached a model, see
  /// DdpReplica::require_announced_gradients.
  void require_announced_gradients() const;

  /// Together: throws Error{usage} when a model's values are not the same on all processes.
  void require_equal_parameters() const;

  /// Together, after each step of an optimizer, which has done `steps`: the comparison when it is due.
  void after_step(std::int64_t steps) const;

 private:
  StepCheckOptions options_;
  std::vector<std::shared_ptr<DdpReplica>> models_ = {};
};

}  // namespace acc
