// SPDX-License-Identifier: Apache-2.0
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "acc/runtime/trainer/trainer.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "unit/runtime/trainer/small_training.hpp"

namespace trainer_resume_test {

using acc::test::error_of;
using acc::test::Line;
using acc::test::points;
using acc::test::quick_arguments;
using acc::test::Stream;
using acc::test::TemporaryFolder;
using acc::test::zeros;

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names checkpoints_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Points that write down which of them are read.
struct Seen {
  std::size_t samples = 0;
  std::shared_ptr<std::vector<std::size_t>> indices = std::make_shared<std::vector<std::size_t>>();

  std::size_t size() const { return samples; }
  std::tuple<at::Tensor, at::Tensor> get(std::size_t index) const {
    indices->push_back(index);
    const at::Tensor x = torch::full({2}, double(index % 5));
    return {x, x[0]};
  }
};

// Metrics m of the evaluations, in order.
acc::TrainerOptions with_metrics(std::vector<double> values) {
  const auto next = std::make_shared<std::size_t>(0);
  return {.compute_metrics = [=](const acc::EvalPrediction&) {
    return acc::Metrics{{"m", values.at((*next)++)}};
  }};
}

// A checkpoint, an evaluation and a log every `steps` steps; the highest m is the best.
acc::TrainingArguments saving(const fs::path& output_dir, int steps, const TemporaryFolder& folder) {
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.output_dir = output_dir;
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = steps;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  arguments.eval_steps = steps;
  arguments.metric_for_best_model = "m";
  arguments.greater_is_better = true;
  return arguments;
}

}  // namespace

TEST_CASE("trainer: a limit keeps what this training saved, not higher steps of an earlier one",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 1;
  arguments.max_steps = 5;
  acc::Trainer(Line(), arguments, points(8)).train();
  arguments.max_steps = 3;
  arguments.save_total_limit = GENERATE(1, 2);
  acc::Trainer(Line(), arguments, points(8)).train(arguments.output_dir / "checkpoint-1");
  CHECK(checkpoints_in(arguments.output_dir) ==
        (arguments.save_total_limit == 1 ? Names{"checkpoint-3"} : Names{"checkpoint-2", "checkpoint-3"}));
}

TEST_CASE("trainer: the evaluation before the first step of a resumed training does not change its rate",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.lr_scheduler_type = acc::SchedulerType::reduce_lr_on_plateau;
  arguments.lr_scheduler_kwargs = {{"patience", 0}, {"factor", 0.5}};
  arguments.eval_on_start = true;
  arguments.logging_steps = 1;
  arguments.max_steps = 3;
  const auto rate_of_last_step = [](const auto& trainer) {
    double rate = 0;
    for (const acc::Metrics& entry : trainer.state().log_history)
      if (entry.contains("learning_rate")) rate = entry.at("learning_rate");
    return rate;
  };
  acc::Trainer whole(Line(), arguments, points(8), points(4), with_metrics({1, 1, 1, 1}));
  whole.train();
  acc::Trainer resumed(Line(), arguments, points(8), points(4), with_metrics({1, 1, 1}));
  resumed.train(arguments.output_dir / "checkpoint-2");
  CHECK(rate_of_last_step(resumed) == rate_of_last_step(whole));
  CHECK(rate_of_last_step(whole) == arguments.learning_rate / 2);
}

TEST_CASE("trainer: the evaluation before the first step of a resumed training does not end it early",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.eval_on_start = true;
  arguments.max_steps = 3;
  const auto steps_with = [&](std::vector<double> metrics, const std::string& from) {
    acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics(std::move(metrics)));
    trainer.add_callback(std::make_shared<acc::EarlyStoppingCallback>(1));
    return trainer.train(from).global_step;
  };
  CHECK(steps_with({1, 2, 3, 4}, "") == 3);
  CHECK(steps_with({3, 4}, arguments.output_dir / "checkpoint-2") == 3);
  CHECK(steps_with({2, 2}, arguments.output_dir / "checkpoint-1") == 2);
}

TEST_CASE("trainer: the best model in another folder stays there, and the newest checkpoint here",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "first", 1, folder);
  arguments.max_steps = 2;
  acc::Trainer(Line(), arguments, points(8), points(4), with_metrics({5, 4})).train();
  arguments.output_dir = folder.path() / "second";
  arguments.max_steps = 4;
  arguments.save_total_limit = 1;
  acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({3, 2}));
  trainer.train(folder.path() / "first" / "checkpoint-2");
  CHECK(trainer.state().best_model_checkpoint == folder.path() / "first" / "checkpoint-1");
  CHECK(checkpoints_in(folder.path() / "first") == Names{"checkpoint-1", "checkpoint-2"});
  CHECK(checkpoints_in(folder.path() / "second") == Names{"checkpoint-4"});
}

TEST_CASE("trainer: a checkpoint of an earlier training is not the best model of this one", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.max_steps = 4;
  acc::Trainer(Line(), arguments, points(8), points(4), with_metrics({1, 2, 3, 4})).train();
  arguments.save_steps = 2;
  acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({9, 8, 7, 6}));
  trainer.train();
  CHECK(trainer.state().best_global_step == 1);
  CHECK(trainer.state().best_model_checkpoint.empty());
}

TEST_CASE("trainer: a training that was moved finds its best model in its new folder", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.max_steps = 2;
  acc::Trainer(Line(), arguments, points(8), points(4), with_metrics({5, 4})).train();
  fs::rename(folder.path() / "run", folder.path() / "moved");
  arguments.output_dir = folder.path() / "moved";
  arguments.max_steps = 3;
  acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({3}));
  trainer.train("last");
  CHECK(trainer.state().best_model_checkpoint == folder.path() / "moved" / "checkpoint-1");
}

TEST_CASE("trainer: NaN is never the best, and any number is better", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.max_steps = 3;
  arguments.save_total_limit = 1;
  arguments.load_best_model_at_end = true;
  SECTION("a number comes after it") {
    acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({NAN, 2, 1}));
    trainer.train();
    CHECK(trainer.state().best_metric == 2);
    CHECK(trainer.state().best_global_step == 2);
    CHECK(checkpoints_in(arguments.output_dir) == Names{"checkpoint-2"});
  }
  SECTION("all are NaN: there is no best, and the last weights stay") {
    Line line;
    acc::Trainer trainer(line, arguments, points(8), points(4), with_metrics({NAN, NAN, NAN}));
    trainer.train();
    CHECK_FALSE(trainer.state().best_metric.has_value());
    CHECK(checkpoints_in(arguments.output_dir) == Names{"checkpoint-3"});
    const at::Tensor last = line->fc->weight.detach().clone();
    trainer.accelerator().load_state(arguments.output_dir / "checkpoint-3");
    CHECK(line->fc->weight.equal(last));
  }
}

TEST_CASE("trainer: a training continued on other batches reads each sample of the pass once", "[runtime]") {
  // A step of 3 processes with batches of 2, or of one process with batches of 6, is the same to a loader.
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  const bool accumulates = GENERATE(false, true);
  const std::size_t samples = accumulates ? 17 : 13;
  arguments.num_train_epochs = 2;
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 1;
  arguments.gradient_accumulation_steps = accumulates ? 2 : 1;
  arguments.per_device_train_batch_size = accumulates ? 4 : 6;
  arguments.output_dir = folder.path() / "many";
  acc::Trainer(zeros(), arguments, Seen{samples}).train();

  arguments.per_device_train_batch_size = 2;
  const auto go_on = [&](const char* name, const fs::path& checkpoint) {
    arguments.output_dir = folder.path() / name;
    const Seen data{samples};
    acc::Trainer trainer(zeros(), arguments, data);
    trainer.train(checkpoint);
    CHECK(trainer.state().epoch == 2);
    return std::pair(data.indices->size(), trainer.model()->fc->weight.detach().clone());
  };
  const auto [read, weights] = go_on("one", folder.path() / "many" / "checkpoint-2");
  CHECK(read == samples + 1);  // the last sample of the first pass, and the second pass
  const auto end_of_pass = folder.path() / "one" / "checkpoint-3";
  CHECK(acc::read_trainer_state(end_of_pass / "trainer_state.json").epoch == 1);
  const auto [again, same_weights] = go_on("again", end_of_pass);
  CHECK(again == samples);
  CHECK(same_weights.equal(weights));
}

TEST_CASE("trainer: a training continued in larger or smaller steps trains the rest of its epochs or steps",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 4;
  arguments.logging_steps = 1;
  const auto train = [&](const char* name, int batch_size, const fs::path& checkpoint) {
    arguments.output_dir = folder.path() / name;
    arguments.per_device_train_batch_size = batch_size;
    const Seen data{16};
    acc::Trainer trainer(zeros(), arguments, data);
    trainer.train(checkpoint);
    return std::pair(trainer.state(), data.indices->size());
  };
  SECTION("epochs, with a rate that falls until their end") {
    arguments.num_train_epochs = 3;  // of 8 steps, then 4
    arguments.learning_rate = 1;
    train("small", 2, "");
    const auto [state, read] = train("large", 4, folder.path() / "small" / "checkpoint-16");
    CHECK(read == 16);
    CHECK(state.epoch == 3);
    CHECK(state.global_step == 20);
    CHECK(state.log_history.at(17).at("learning_rate") == Approx(3.0 / 20));
    CHECK(train("again", 4, folder.path() / "large" / "checkpoint-20").second == 0);
  }
  SECTION("steps") {
    arguments.max_steps = 12;  // 3 epochs of 4 steps, then 1.5 of 8
    train("large", 4, "");
    CHECK(train("small", 2, folder.path() / "large" / "checkpoint-8").first.global_step == 12);
  }
  SECTION("epochs, also in steps of which a whole training has as many as the second part ended with") {
    arguments.num_train_epochs = 3;
    arguments.save_steps = 1;
    train("small", 2, "");
    CHECK(train("large", 16, folder.path() / "small" / "checkpoint-3").first.global_step == 6);
    CHECK(train("medium", 8, folder.path() / "large" / "checkpoint-4").first.global_step == 8);
  }
  SECTION("a part of an epoch, also from within a step of the new size") {
    arguments.num_train_epochs = 0.5;
    arguments.save_steps = 1;
    train("small", 1, "");
    arguments.gradient_accumulation_steps = 4;  // 12 samples: this is the first half of one step
    const auto [state, read] = train("large", 3, folder.path() / "small" / "checkpoint-6");
    CHECK(state.global_step == 7);
    CHECK(state.epoch >= 0.5);
  }
}

TEST_CASE("trainer: steps of another size have one schedule, also after a checkpoint of theirs",
          "[runtime]") {
  struct Short : acc::TrainerCallback {
    void on_step_end(const Arguments&, State& state, Control& control) override {
      control.should_epoch_stop = state.global_step % 3 == 0;
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 3;
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 1;
  const auto train = [&](const char* name, int batch_size, const fs::path& checkpoint) {
    arguments.output_dir = folder.path() / name;
    arguments.per_device_train_batch_size = batch_size;
    acc::Trainer trainer(zeros(), arguments, points(16),
                         acc::TrainerOptions{.callbacks = {std::make_shared<Short>()}});
    trainer.train(checkpoint);
    return std::pair(trainer.state().max_steps, trainer.model()->fc->weight.detach().clone());
  };
  train("large", 4, "");
  const auto [steps, weights] = train("small", 2, folder.path() / "large" / "checkpoint-2");
  const auto [same_steps, same_weights] = train("again", 2, folder.path() / "small" / "checkpoint-4");
  CHECK(same_steps == steps);
  CHECK(same_weights.equal(weights));
}

TEST_CASE("trainer: an iterable data set continues in the pass in which the checkpoint was saved",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.per_device_train_batch_size = 1;
  arguments.max_steps = 30;
  arguments.save_strategy = GENERATE(acc::SaveStrategy::steps, acc::SaveStrategy::epoch);
  arguments.save_steps = GENERATE(7, 10);
  const auto train = [&](const fs::path& checkpoint) {
    acc::Trainer trainer(zeros(), arguments, Stream());
    CHECK(trainer.train(checkpoint).global_step == 30);
    return trainer.model()->fc->weight.detach().clone();
  };
  const at::Tensor whole = train("");
  for (const std::string& name : checkpoints_in(arguments.output_dir)) {
    INFO(name);
    CHECK(train(arguments.output_dir / name).equal(whole));
  }
}

TEST_CASE("trainer: an epoch that a callback ended is over after a checkpoint, too", "[runtime]") {
  enum class Event { step_begin, substep_end, step_end, log, evaluate };
  // Ends each epoch of 4 steps after its second, or in the third.
  struct EndOfEpoch : acc::TrainerCallback {
    explicit EndOfEpoch(Event when) : end(when) {}
    void on_step_begin(const Arguments&, State& state, Control& control) override {
      end_at(Event::step_begin, state, control);
    }
    void on_substep_end(const Arguments&, State& state, Control& control) override {
      end_at(Event::substep_end, state, control);
    }
    void on_step_end(const Arguments&, State& state, Control& control) override {
      end_at(Event::step_end, state, control);
    }
    void on_log(const Arguments&, State& state, Control& control, const acc::Metrics& logs) override {
      if (logs.contains("loss")) end_at(Event::log, state, control);
    }
    void on_evaluate(const Arguments&, State& state, Control& control, const acc::Metrics&) override {
      end_at(Event::evaluate, state, control);
    }
    std::string name() const override { return "EndOfEpoch"; }
    std::string state() const override { return std::to_string(last_end); }
    void load_state(std::string_view json) override { last_end = std::stol(std::string(json)); }

    void end_at(Event event, const State& state, Control& control) {
      if (event != end || state.global_step % 2 != 0 || state.global_step == last_end) return;
      last_end = state.global_step;
      control.should_epoch_stop = true;
    }
    Event end;
    std::int64_t last_end = 0;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 2, folder);
  arguments.metric_for_best_model = "loss";
  arguments.gradient_accumulation_steps = 2;
  arguments.logging_steps = 1;
  arguments.num_train_epochs = 3;
  arguments.save_strategy = GENERATE(acc::SaveStrategy::steps, acc::SaveStrategy::epoch);
  const Event end =
      GENERATE(Event::step_begin, Event::substep_end, Event::step_end, Event::log, Event::evaluate);
  const auto train = [&](const fs::path& checkpoint) {
    acc::Trainer trainer(zeros(), arguments, points(32), points(4),
                         acc::TrainerOptions{.callbacks = {std::make_shared<EndOfEpoch>(end)}});
    CHECK(trainer.train(checkpoint).global_step == 6);
    return trainer.model()->fc->weight.detach().clone();
  };
  const at::Tensor whole = train("");
  CAPTURE(static_cast<int>(arguments.save_strategy), static_cast<int>(end));
  CHECK(train(arguments.output_dir / "checkpoint-2").equal(whole));
}

TEST_CASE("trainer: the evaluation at the end of an epoch follows a checkpoint of its last step",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 2, folder);
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.num_train_epochs = 2;
  // With 2, the last step of an epoch has one batch of 3.
  arguments.gradient_accumulation_steps = GENERATE(1, 2);
  const auto data = points(arguments.gradient_accumulation_steps == 1 ? 8 : 12);
  acc::Trainer(Line(), arguments, data, points(4), with_metrics({1, 2})).train();
  acc::Trainer first(Line(), arguments, data, points(4), with_metrics({1, 2}));
  first.train(arguments.output_dir / "checkpoint-2");
  CHECK(first.state().best_metric == 2);
  acc::Trainer last(Line(), arguments, data, points(4), with_metrics({3}));
  CHECK(last.train(arguments.output_dir / "checkpoint-4").global_step == 4);
  CHECK(last.state().best_metric == 3);
}

TEST_CASE(
    "trainer: the evaluation at the end of a training within an epoch follows a checkpoint of its last step",
    "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 3, folder);
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.max_steps = 6;  // 4 steps, and 2 of the next 4
  const bool at_end = GENERATE(false, true);
  if (at_end) arguments.save_strategy = acc::SaveStrategy::epoch;
  const auto go_on = [&](std::vector<double> metrics, int max_steps) {
    arguments.max_steps = max_steps;
    acc::Trainer trainer(Line(), arguments, points(16), points(4), with_metrics(std::move(metrics)));
    CHECK(trainer.train(arguments.output_dir / "checkpoint-6").global_step == max_steps);
    return std::pair(trainer.state().best_metric, trainer.model()->fc->weight.detach().clone());
  };
  acc::Trainer whole(Line(), arguments, points(16), points(4), with_metrics({1, 2}));
  whole.train();
  const auto [best, weights] = go_on(at_end ? std::vector<double>{} : std::vector<double>{2}, 6);
  CHECK(best == 2);
  CHECK(weights.equal(whole.model()->fc->weight));
  // More steps go on within the epoch.
  CHECK(go_on({3}, 8).first == 3);
}

TEST_CASE("trainer: a save that failed does not spoil the next one", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.max_steps = 1;
  arguments.save_strategy = acc::SaveStrategy::steps;
  folder.write("run/checkpoint-1", "a file in the way");
  acc::Trainer trainer(Line(), arguments, points(8));
  CHECK(error_of([&] { trainer.train(); }).find("cannot be replaced") != std::string::npos);
  trainer.accelerator().save_state(folder.path() / "by_hand");
  CHECK_FALSE(fs::exists(folder.path() / "by_hand" / "trainer_state.json"));
}

TEST_CASE("trainer: a model alone replaces the whole checkpoint of an earlier training", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 2;
  arguments.max_steps = 4;
  acc::Trainer(Line(), arguments, points(16)).train();
  folder.write("run/checkpoint-4/notes", "of the user");
  arguments.save_only_model = true;
  acc::Trainer trainer(zeros(), arguments, points(16));
  trainer.train();
  Names files;
  for (const auto& entry : fs::directory_iterator(arguments.output_dir / "checkpoint-4"))
    files.push_back(entry.path().filename().string());
  std::ranges::sort(files);
  CHECK(files == Names{"model.safetensors", "notes", "trainer_state.json", "training_args.json"});
  CHECK(checkpoints_in(arguments.output_dir) == Names{"checkpoint-2", "checkpoint-4"});
  CHECK(error_of([&] {
          acc::Trainer(Line(), arguments, points(16)).train("last");
        }).find("has no optimizer, so training cannot be resumed from it") != std::string::npos);
}

TEST_CASE("trainer: a training may be continued with another evaluation set, or without", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 1;
  arguments.max_steps = 2;
  acc::Trainer(Line(), arguments, points(8), points(4)).train();
  const fs::path checkpoint = arguments.output_dir / "checkpoint-1";
  CHECK(acc::Trainer(Line(), arguments, points(8), points(6)).train(checkpoint).global_step == 2);
  acc::Trainer(Line(), arguments, points(8)).train();
  CHECK(acc::Trainer(Line(), arguments, points(8), points(6)).train(checkpoint).global_step == 2);
}

TEST_CASE("trainer: reduce_lr_on_plateau continues from before its first evaluation", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 1, folder);
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.lr_scheduler_type = acc::SchedulerType::reduce_lr_on_plateau;
  arguments.num_train_epochs = 1;
  acc::Trainer(Line(), arguments, points(8), points(4), with_metrics({1})).train();
  acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({1}));
  CHECK(trainer.train(arguments.output_dir / "checkpoint-1").global_step == 2);
}

}  // namespace trainer_resume_test
