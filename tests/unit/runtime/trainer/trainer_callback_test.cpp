// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_callback.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace trainer_callback_test {

using acc::EarlyStoppingCallback;
using acc::TrainerControl;
using acc::TrainerState;
using acc::TrainingArguments;
using acc::detail::DefaultFlowCallback;

namespace {

TrainingArguments watching_loss() {
  TrainingArguments arguments;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.load_best_model_at_end = true;
  return acc::completed(arguments);
}

// Does what a Trainer does with a metric, and returns whether training stops.
bool stops_after(EarlyStoppingCallback& callback, TrainerState& state, double loss) {
  const TrainingArguments arguments = watching_loss();
  TrainerControl control;
  callback.on_evaluate(arguments, state, control, {{"eval_loss", loss}});
  if (acc::detail::is_better(arguments, loss, state.best_metric)) state.best_metric = loss;
  return control.should_training_stop;
}

}  // namespace

TEST_CASE("trainer_callback: training stops when the metric has not improved for long enough", "[runtime]") {
  EarlyStoppingCallback callback(2);
  TrainerState state;
  CHECK_FALSE(stops_after(callback, state, 1.0));
  CHECK_FALSE(stops_after(callback, state, 1.1));
  CHECK_FALSE(stops_after(callback, state, 0.9));
  CHECK_FALSE(stops_after(callback, state, 0.95));
  CHECK(stops_after(callback, state, 0.9));
}

TEST_CASE("trainer_callback: an improvement below the threshold does not count", "[runtime]") {
  EarlyStoppingCallback callback(1, 0.1);
  TrainerState state;
  CHECK_FALSE(stops_after(callback, state, 1.0));
  CHECK(stops_after(callback, state, 0.95));
}

TEST_CASE("trainer_callback: NaN is not an improvement, and a number after it is", "[runtime]") {
  EarlyStoppingCallback callback(2, 0.1);
  TrainerState state;
  CHECK_FALSE(stops_after(callback, state, NAN));
  CHECK_FALSE(stops_after(callback, state, 1.0));
  CHECK_FALSE(stops_after(callback, state, NAN));
  CHECK(stops_after(callback, state, 0.95));
}

TEST_CASE("trainer_callback: early stopping continues to count after a restart", "[runtime]") {
  EarlyStoppingCallback before(2);
  TrainerState state;
  stops_after(before, state, 1.0);
  stops_after(before, state, 1.1);
  EarlyStoppingCallback stopping(2);
  stopping.load_state(before.state());
  CHECK(stops_after(stopping, state, 1.2));
}

namespace {

// Has any text as its state.
struct Named : acc::TrainerCallback {
  explicit Named(std::string state_text, std::string its_name = "Named")
      : text(std::move(state_text)), own_name(std::move(its_name)) {}
  std::string name() const override { return own_name; }
  std::string state() const override { return text; }
  void load_state(std::string_view json) override { text = json; }

  std::string text;
  std::string own_name;
};

acc::detail::CallbackHandler handler_of(const std::vector<std::shared_ptr<Named>>& callbacks) {
  acc::detail::CallbackHandler handler;
  for (const auto& callback : callbacks) handler.add(callback);
  return handler;
}

}  // namespace

TEST_CASE("trainer_callback: callbacks of one name each get their own state back", "[runtime]") {
  const auto states = handler_of({std::make_shared<Named>("{\"a\":1}"), std::make_shared<Named>("{\"b\":2}"),
                                  std::make_shared<Named>("[3]", "List"), std::make_shared<Named>("4", "One"),
                                  std::make_shared<Named>("5", "")})
                          .states();
  CHECK(states == std::map<std::string, std::string>{
                      {"Named", R"([{"a":1}, {"b":2}])"}, {"List", "[[3]]"}, {"One", "4"}});
  const auto first = std::make_shared<Named>("");
  const auto second = std::make_shared<Named>("");
  const auto third = std::make_shared<Named>("new");
  const auto list = std::make_shared<Named>("", "List");
  const auto one = std::make_shared<Named>("", "One");
  handler_of({first, list, second, one, third}).load_states(states);
  CHECK(first->text == R"({"a":1})");
  CHECK(second->text == R"({"b":2})");
  CHECK(third->text == "new");
  CHECK(list->text == "[3]");
  CHECK(one->text == "4");
}

TEST_CASE("trainer_callback: transformers' states of two callbacks are read, more than there are left out",
          "[runtime]") {
  const auto state = [](int count) {
    return R"({"args": {"early_stopping_patience": 2, "early_stopping_threshold": 0.0},)"
           R"("attributes": {"early_stopping_patience_counter": )" +
           std::to_string(count) + "}}";
  };
  const auto stopping = std::make_shared<EarlyStoppingCallback>(2);
  acc::detail::CallbackHandler handler;
  handler.add(stopping);
  handler.load_states({{"EarlyStoppingCallback", "[" + state(1) + ", " + state(0) + "]"}});
  TrainerState with_best{.best_metric = 1.0};
  CHECK(stops_after(*stopping, with_best, 1.1));
}

TEST_CASE("trainer_callback: early stopping needs a metric and evaluations", "[runtime]") {
  EarlyStoppingCallback callback;
  TrainerState state;
  TrainerControl control;
  TrainingArguments arguments;
  CHECK(acc::test::error_of([&] { callback.on_train_begin(arguments, state, control); }) ==
        "EarlyStoppingCallback: needs a metric (set load_best_model_at_end or metric_for_best_model)");
  arguments.metric_for_best_model = "loss";
  CHECK(acc::test::error_of([&] { callback.on_train_begin(arguments, state, control); }) ==
        "EarlyStoppingCallback: needs evaluations (set eval_strategy to steps or epoch)");
}

TEST_CASE("trainer_callback: a metric that no evaluation set has is refused with those that there are",
          "[runtime]") {
  TrainingArguments arguments;
  arguments.metric_for_best_model = "f1";
  CHECK(acc::test::error_of([&] {
          acc::detail::metric_for_best_model(arguments, {{"eval_loss", 1}, {"eval_accuracy", 1}});
        }) ==
        "metric_for_best_model: the evaluation has no metric eval_f1 (its metrics are eval_accuracy, "
        "eval_loss)");
}

TEST_CASE("trainer_callback: early stopping leaves out the evaluation before the first step, of all its sets",
          "[runtime]") {
  EarlyStoppingCallback callback(1);
  TrainerState state{.best_metric = 1.0};
  TrainerControl control;
  TrainingArguments arguments = watching_loss();
  arguments.eval_on_start = true;
  callback.on_train_begin(arguments, state, control);
  callback.on_evaluate(arguments, state, control, {{"eval_loss", 2}});
  callback.on_evaluate(arguments, state, control, {{"eval_loss", 2}});
  CHECK_FALSE(control.should_training_stop);
  callback.on_step_begin(arguments, state, control);
  callback.on_evaluate(arguments, state, control, {{"eval_loss", 2}});
  CHECK(control.should_training_stop);
}

TEST_CASE("trainer_callback: early stopping leaves out evaluation sets without its metric", "[runtime]") {
  EarlyStoppingCallback callback(1);
  TrainerState state;
  TrainerControl control;
  TrainingArguments arguments;
  arguments.metric_for_best_model = "near_loss";
  callback.on_evaluate(arguments, state, control, {{"eval_far_loss", 2}});
  CHECK_FALSE(control.should_training_stop);
  state.best_metric = 1;
  callback.on_evaluate(arguments, state, control, {{"eval_near_loss", 2}});
  CHECK(control.should_training_stop);
}

TEST_CASE("trainer_callback: logs, evaluations and checkpoints come at their steps, and at the last",
          "[runtime]") {
  TrainingArguments arguments;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  TrainerState state{.max_steps = 10, .logging_steps = 2, .eval_steps = 3, .save_steps = 4};
  std::string events;
  DefaultFlowCallback flow;
  for (state.global_step = 1; state.global_step <= 10; ++state.global_step) {
    TrainerControl control;
    flow.on_step_end(arguments, state, control);
    events += std::to_string(state.global_step) + (control.should_log ? "l" : "") +
              (control.should_evaluate ? "e" : "") + (control.should_save ? "s" : "") +
              (control.should_training_stop ? "." : "") + " ";
  }
  CHECK(events == "1 2l 3e 4ls 5 6le 7 8ls 9e 10les. ");
}

TEST_CASE("trainer_callback: with epoch strategies nothing happens at steps, and evaluation may be delayed",
          "[runtime]") {
  TrainingArguments arguments;
  arguments.logging_strategy = arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.eval_delay = 2;
  TrainerState state{.epoch = 1, .global_step = 500, .max_steps = 1000};
  DefaultFlowCallback flow;
  TrainerControl control;
  flow.on_step_end(arguments, state, control);
  CHECK_FALSE((control.should_log || control.should_evaluate || control.should_save));
  flow.on_epoch_end(arguments, state, control);
  CHECK(control.should_log);
  CHECK(control.should_save);
  CHECK_FALSE(control.should_evaluate);
  state.epoch = 2;
  flow.on_epoch_end(arguments, state, control);
  CHECK(control.should_evaluate);
}

}  // namespace trainer_callback_test
