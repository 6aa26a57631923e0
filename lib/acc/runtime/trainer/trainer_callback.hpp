// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc {

/// What the Trainer does next; callbacks may change it. The Trainer resets each flag when it has acted on it.
struct TrainerControl {
  bool should_training_stop = false;  ///< Ends the training.
  bool should_epoch_stop = false;     ///< Ends the epoch.
  bool should_save = false;           ///< Saves a checkpoint.
  bool should_evaluate = false;       ///< Evaluates.
  bool should_log = false;            ///< Logs.
};

/// Functions that are called at the events of a training, with transformers' names. Every process calls its
/// callbacks at the same steps; changes to `control` must be the same on all processes.
class TrainerCallback {
 public:
  using Arguments = TrainingArguments;  ///< The Trainer's arguments.
  using State = TrainerState;           ///< Its progress.
  using Control = TrainerControl;       ///< What it does next.

  virtual ~TrainerCallback() = default;

  virtual void on_init_end(const Arguments&, State&, Control&) {}     ///< The Trainer is constructed.
  virtual void on_train_begin(const Arguments&, State&, Control&) {}  ///< Before the first step.
  virtual void on_train_end(const Arguments&, State&, Control&) {}    ///< After the last step.
  /// Before the first step of an epoch.
  virtual void on_epoch_begin(const Arguments&, State&, Control&) {}
  virtual void on_epoch_end(const Arguments&, State&, Control&) {}   ///< After the last step of an epoch.
  virtual void on_step_begin(const Arguments&, State&, Control&) {}  ///< Before the first batch of a step.
  /// Called after gradients were averaged and clipped, and before parameters change.
  virtual void on_pre_optimizer_step(const Arguments&, State&, Control&) {}
  virtual void on_optimizer_step(const Arguments&, State&, Control&) {}  ///< Parameters have changed.
  /// Called after a batch that does not end a step.
  virtual void on_substep_end(const Arguments&, State&, Control&) {}
  virtual void on_step_end(const Arguments&, State&, Control&) {}  ///< After a step.
  /// After an evaluation.
  virtual void on_evaluate(const Arguments&, State&, Control&, const Metrics& /*metrics*/) {}
  /// After a prediction.
  virtual void on_predict(const Arguments&, State&, Control&, const Metrics& /*metrics*/) {}
  /// Called after each batch of an evaluation or prediction. `batches` is the number of batches in the whole
  /// pass, absent if not known.
  virtual void on_prediction_step(const Arguments&, State&, Control&,
                                  std::optional<std::size_t> /*batches*/) {}
  /// A checkpoint is complete, or with save_in_background is being written.
  virtual void on_save(const Arguments&, State&, Control&) {}
  /// After an entry was logged.
  virtual void on_log(const Arguments&, State&, Control&, const Metrics& /*logs*/) {}

  /// The name under which its state is saved in checkpoints; empty if it has no state. Callbacks with one
  /// name get their states back in their order.
  virtual std::string name() const { return {}; }
  /// The state as JSON text.
  virtual std::string state() const { return "{}"; }
  virtual void load_state(std::string_view /*json*/) {}  ///< Takes a state that `state` returned.
};

/// Stops training when the metric for the best model has not improved by more than `threshold` in `patience`
/// evaluations; that of eval_on_start, to which no step led, does not count. Requires load_best_model_at_end
/// or metric_for_best_model, and an eval_strategy.
class EarlyStoppingCallback : public TrainerCallback {
 public:
  explicit EarlyStoppingCallback(int patience = 1, double threshold = 0)
      : patience_(patience), threshold_(threshold) {}

  /// Throws Error{usage} when there is no metric to watch, or no evaluation.
  void on_train_begin(const Arguments& arguments, State& state, Control& control) override;
  void on_step_begin(const Arguments&, State&, Control&) override { is_before_first_step_ = false; }
  /// Throws Error{usage} when the evaluation did not give the metric.
  void on_evaluate(const Arguments& arguments, State& state, Control& control,
                   const Metrics& metrics) override;

  std::string name() const override { return "EarlyStoppingCallback"; }
  std::string state() const override;
  void load_state(std::string_view json) override;  ///< See TrainerCallback.

 private:
  int patience_;
  double threshold_;
  int evaluations_without_improvement_ = 0;
  bool is_before_first_step_ = false;
};

namespace detail {

/// Triggers logs, evaluations, checkpoints and the end of training according to the arguments: transformers'
/// DefaultFlowCallback.
class DefaultFlowCallback : public TrainerCallback {
 public:
  void on_step_end(const Arguments& arguments, State& state, Control& control) override;
  void on_epoch_end(const Arguments& arguments, State& state, Control& control) override;
};

/// Calls all callbacks in order.
class CallbackHandler {
 public:
  void add(std::shared_ptr<TrainerCallback> callback) { callbacks_.push_back(std::move(callback)); }

  template <class... Parameters, class... Arguments>
  void call(void (TrainerCallback::*event)(const TrainingArguments&, TrainerState&, TrainerControl&,
                                           Parameters...),
            const TrainingArguments& arguments, TrainerState& state, TrainerControl& control,
            const Arguments&... more) const {
    for (const auto& callback : callbacks_) (callback.get()->*event)(arguments, state, control, more...);
  }

  /// The states of all callbacks that have one, by name; the list of them where several have one name, in the
  /// order of the callbacks, as transformers has it.
  std::map<std::string, std::string> states() const;
  void load_states(const std::map<std::string, std::string>& states) const;

 private:
  std::vector<std::shared_ptr<TrainerCallback>> callbacks_ = {};
};

/// The metric that determines the best model; `metrics` has it with the prefix `eval_`. Throws Error{usage}
/// with the names of all metrics when it is not one of them.
double metric_for_best_model(const TrainingArguments& arguments, const Metrics& metrics);

/// Likewise; absent if the metrics, such as those of another evaluation set, do not have it.
std::optional<double> find_metric_for_best_model(const TrainingArguments& arguments, const Metrics& metrics);

/// Whether `value` is better than the best so far, if there is one. NaN is never better, and any number is
/// better than NaN.
bool is_better(const TrainingArguments& arguments, double value, std::optional<double> best);

}  // namespace detail
}  // namespace acc
