// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace trainer_test {

using acc::test::error_of;
using acc::test::TemporaryFolder;

namespace {

struct LineImpl : torch::nn::Module {
  LineImpl() : fc(register_module("fc", torch::nn::Linear(2, 1))) {}
  torch::Tensor forward(torch::Tensor x) { return fc(x).squeeze(1); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Line);

// Points with y = x0 + 2 x1, which a linear model can learn.
acc::TensorDataset<2> points(std::int64_t size) {
  const at::Tensor x = torch::arange(2 * size).remainder(7).view({size, 2}).to(torch::kFloat) / 7;
  return acc::TensorDataset(x, x.select(1, 0) + 2 * x.select(1, 1));
}

acc::TrainingArguments in(const TemporaryFolder& folder) {
  acc::TrainingArguments arguments;
  arguments.output_dir = folder.path() / "run";
  arguments.learning_rate = 0.05;
  arguments.per_device_train_batch_size = 4;
  arguments.save_strategy = acc::SaveStrategy::no;
  arguments.disable_tqdm = true;
  return arguments;
}

// Records the events of a training as letters.
class Recorder : public acc::TrainerCallback {
 public:
  void on_train_begin(const Arguments&, State&, Control&) override { events += "T("; }
  void on_train_end(const Arguments&, State&, Control&) override { events += ")"; }
  void on_epoch_begin(const Arguments&, State&, Control&) override { events += "E["; }
  void on_epoch_end(const Arguments&, State&, Control&) override { events += "]"; }
  void on_step_begin(const Arguments&, State&, Control&) override { events += "b"; }
  void on_pre_optimizer_step(const Arguments&, State&, Control&) override { events += "p"; }
  void on_optimizer_step(const Arguments&, State&, Control&) override { events += "o"; }
  void on_substep_end(const Arguments&, State&, Control&) override { events += "s"; }
  void on_step_end(const Arguments&, State&, Control&) override { events += "e"; }
  void on_evaluate(const Arguments&, State&, Control&, const acc::Metrics&) override { events += "V"; }
  void on_save(const Arguments&, State&, Control&) override { events += "S"; }
  void on_log(const Arguments&, State&, Control&, const acc::Metrics&) override { events += "l"; }

  std::string events;
};

}  // namespace

TEST_CASE("trainer: a model learns, and the logs show it", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.num_train_epochs = 20;
  arguments.logging_strategy = acc::IntervalStrategy::epoch;
  acc::Trainer trainer(Line(), arguments, points(16), points(8));
  const double before = trainer.evaluate().at("eval_loss");
  const acc::TrainOutput output = trainer.train();
  CHECK(output.global_step == 80);
  const auto& history = trainer.state().log_history;
  REQUIRE(history.size() == 21);
  CHECK(history[19].at("loss") < history[0].at("loss") / 2);
  CHECK(history[0].at("learning_rate") == Approx(0.05 * (1 - 3.0 / 80)));
  CHECK(history[20].at("train_loss") == Approx(output.training_loss));
  CHECK(trainer.evaluate().at("eval_loss") < before / 2);
}

TEST_CASE("trainer: callbacks are called at their events, in order", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.num_train_epochs = 1;
  arguments.gradient_accumulation_steps = 2;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  const auto recorder = std::make_shared<Recorder>();
  acc::Trainer trainer(Line(), arguments, points(12), points(4), {.callbacks = {recorder}});
  trainer.train();
  // Three batches: a step with two batches and one with the last; then the events at the end of the epoch.
  CHECK(recorder->events == "T(E[bspoebpoe]lVSl)");
  CHECK(std::filesystem::exists(arguments.output_dir / "checkpoint-2" / "trainer_state.json"));
}

TEST_CASE("trainer: a callback may end an epoch or the training", "[runtime]") {
  struct Stop : acc::TrainerCallback {
    void on_step_end(const Arguments&, State& state, Control& control) override {
      if (state.global_step == 2) control.should_epoch_stop = true;
      if (state.global_step == 5) control.should_training_stop = true;
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.num_train_epochs = 9;
  acc::Trainer trainer(Line(), arguments, points(16),
                       acc::TrainerOptions{.callbacks = {std::make_shared<Stop>()}});
  CHECK(trainer.train().global_step == 5);
  CHECK(trainer.state().epoch == 1.75);
}

TEST_CASE("trainer: a program's own loss, optimizer and schedule are used", "[runtime]") {
  struct Own : acc::Trainer<LineImpl, acc::TensorDataset<2>> {
    using Trainer::Trainer;
    acc::LossOutput compute_loss(acc::Model<LineImpl>& model, Batch& batch) override {
      const at::Tensor logits = model(batch[0]);
      return {.loss = (logits - batch[1]).abs().mean(), .logits = logits, .labels = batch[1]};
    }
    std::shared_ptr<torch::optim::Optimizer> create_optimizer() override {
      return std::make_shared<torch::optim::SGD>(model()->parameters(), 0.5);
    }
    acc::Schedule create_schedule(std::int64_t steps) override { return acc::step_lr(steps / 2); }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.max_steps = 8;
  arguments.logging_steps = 1;
  Own trainer(Line(), arguments, points(16));
  trainer.train();
  CHECK(trainer.state().log_history[3].at("learning_rate") == Approx(0.5));
  CHECK(trainer.state().log_history[4].at("learning_rate") == Approx(0.05));
}

TEST_CASE("trainer: predictions are in the order of the data, each once", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.per_device_eval_batch_size = 4;
  const auto mean = [](const acc::EvalPrediction& all) {
    return acc::Metrics{{"mean", all.label_ids.mean().item<double>()}};
  };
  Line line;
  acc::Trainer trainer(line, arguments, points(4), points(4), {.compute_metrics = mean});
  const acc::TensorDataset<2> data = points(10);
  const acc::PredictionOutput output = trainer.predict(data);
  CHECK(output.label_ids.equal(data[1]));
  CHECK(output.predictions.allclose(line(data[0])));
  CHECK(output.metrics.at("test_mean") == Approx(data[1].mean().item<double>()));
  CHECK(output.metrics.at("test_loss") == Approx(torch::mse_loss(line(data[0]), data[1]).item<double>()));
}

TEST_CASE("trainer: the best model is loaded at the end, and its checkpoint is kept", "[runtime]") {
  // Makes the bias worse in each step, so that the first evaluation is the best.
  struct Worse : acc::TrainerCallback {
    explicit Worse(Line given) : line(std::move(given)) {}
    void on_step_end(const Arguments&, State& state, Control&) override {
      const at::NoGradGuard no_grad;
      line->fc->bias.fill_(100.0 * double(state.global_step));
    }
    Line line;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.num_train_epochs = 4;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.load_best_model_at_end = true;
  arguments.save_total_limit = 2;
  Line line;
  acc::Trainer trainer(line, arguments, points(4), points(4), {.callbacks = {std::make_shared<Worse>(line)}});
  trainer.train();
  CHECK(line->fc->bias.item<double>() == 100);
  CHECK(trainer.state().best_global_step == 1);
  CHECK(trainer.state().best_model_checkpoint == arguments.output_dir / "checkpoint-1");
  CHECK(std::filesystem::exists(arguments.output_dir / "checkpoint-1"));
  CHECK_FALSE(std::filesystem::exists(arguments.output_dir / "checkpoint-2"));
  CHECK(std::filesystem::exists(arguments.output_dir / "checkpoint-4"));
}

namespace {

namespace fs = std::filesystem;

std::vector<std::string> checkpoints_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

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

// Ten points in each pass, others in the next.
struct Stream {
  std::uint64_t epoch = 0;
  int at = 0;

  void set_epoch(std::uint64_t next) { epoch = next; }
  void reset() { at = 0; }
  std::optional<std::tuple<at::Tensor, at::Tensor>> next() {
    if (at == 10) return std::nullopt;
    const at::Tensor x = torch::full({2}, std::sin(double(++at) + 13 * double(epoch)));
    return std::tuple{x, x[0]};
  }
};

Line zeros() {
  const at::NoGradGuard no_grad;
  Line line;
  for (const at::Tensor& parameter : line->parameters()) parameter.zero_();
  return line;
}

// Metrics m of the evaluations, in order.
acc::TrainerOptions with_metrics(std::vector<double> values) {
  const auto next = std::make_shared<std::size_t>(0);
  return {.compute_metrics = [=](const acc::EvalPrediction&) {
    return acc::Metrics{{"m", values.at((*next)++)}};
  }};
}

// A checkpoint, an evaluation and a log every `steps` steps; the highest m is the best.
acc::TrainingArguments saving(const fs::path& output_dir, int steps, const TemporaryFolder& folder) {
  acc::TrainingArguments arguments = in(folder);
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
  acc::TrainingArguments arguments = in(folder);
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
  acc::TrainingArguments arguments = in(folder);
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
  acc::TrainingArguments arguments = in(folder);
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
  acc::TrainingArguments arguments = in(folder);
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
  acc::TrainingArguments arguments = in(folder);
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

TEST_CASE("trainer: an iterable data set without samples ends the training", "[runtime]") {
  struct Empty : Stream {
    std::optional<std::tuple<at::Tensor, at::Tensor>> next() { return std::nullopt; }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.max_steps = 30;
  CHECK(acc::Trainer(Line(), arguments, Empty()).train().global_step == 0);
}

TEST_CASE("trainer: an epoch that a callback ended is over after a checkpoint, too", "[runtime]") {
  struct EveryTwo : acc::TrainerCallback {
    void on_step_end(const Arguments&, State& state, Control& control) override {
      control.should_epoch_stop = state.global_step % 2 == 0;
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.max_steps = 6;
  arguments.save_strategy = GENERATE(acc::SaveStrategy::steps, acc::SaveStrategy::epoch);
  arguments.save_steps = 2;
  const auto train = [&](const fs::path& checkpoint) {
    acc::Trainer trainer(zeros(), arguments, points(16),
                         acc::TrainerOptions{.callbacks = {std::make_shared<EveryTwo>()}});
    trainer.train(checkpoint);
    return trainer.model()->fc->weight.detach().clone();
  };
  const at::Tensor whole = train("");
  CHECK(train(arguments.output_dir / "checkpoint-2").equal(whole));
}

TEST_CASE("trainer: the evaluation at the end of an epoch follows a checkpoint of its last step",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = saving(folder.path() / "run", 2, folder);
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.num_train_epochs = 2;
  acc::Trainer(Line(), arguments, points(8), points(4), with_metrics({1, 2})).train();
  acc::Trainer trainer(Line(), arguments, points(8), points(4), with_metrics({1, 2}));
  trainer.train(arguments.output_dir / "checkpoint-2");
  CHECK(trainer.state().best_metric == 2);
}

TEST_CASE("trainer: a program's own optimizer begins each training with its own rate", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.max_steps = 4;
  arguments.logging_steps = 1;
  Line line;
  const auto sgd = std::make_shared<torch::optim::SGD>(line->parameters(), 0.5);
  acc::Trainer trainer(line, arguments, points(16), acc::TrainerOptions{.optimizer = sgd});
  for (int i = 0; i < 2; ++i) {
    trainer.train();
    CHECK(trainer.state().log_history[0].at("learning_rate") == Approx(0.5));
  }
}

TEST_CASE("trainer: a save that failed does not spoil the next one", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.max_steps = 1;
  arguments.save_strategy = acc::SaveStrategy::steps;
  folder.write("run/checkpoint-1", "a file in the way");
  acc::Trainer trainer(Line(), arguments, points(8));
  CHECK(error_of([&] { trainer.train(); }).find("cannot be replaced") != std::string::npos);
  trainer.accelerator().save_state(folder.path() / "by_hand");
  CHECK_FALSE(fs::exists(folder.path() / "by_hand" / "trainer_state.json"));
}

TEST_CASE("trainer: a training may be continued with another evaluation set, or without", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
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

TEST_CASE("trainer: transformers' state of a training is read, and ours has its names", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainerState state{.epoch = 1.5, .global_step = 3};
  state.log_history = {{{"loss", 0.5}, {"step", 2}}};
  state.best_metric = 0.25;
  const auto file = folder.write("trainer_state.json", acc::to_json(state));
  const acc::TrainerState again = acc::read_trainer_state(file);
  CHECK(again.epoch == 1.5);
  CHECK(again.log_history == state.log_history);
  CHECK(again.best_metric == 0.25);
  CHECK(acc::to_json(again) == acc::to_json(state));
  const auto broken = folder.write("broken.json", "{");
  CHECK(error_of([&] {
          acc::read_trainer_state(broken);
        }).starts_with(broken.string() + ": is not the state of a Trainer"));
}

TEST_CASE("trainer: invalid data and arguments are reported before the first step", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(4)).evaluate(); }) ==
        "Trainer: there is no evaluation data (give it after the training data, or set eval_strategy to no)");
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(4)).train("true"); }) ==
        "resume_from_checkpoint: no checkpoint in " + arguments.output_dir.string());
  arguments.dataloader_drop_last = true;
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(3)).train(); }) ==
        "Trainer: the training data has no batches (it is smaller than a batch, and dataloader_drop_last is "
        "set)");
  arguments.dataloader_drop_last = false;
  arguments.gradient_checkpointing = true;
  CHECK(error_of([&] {
          acc::Trainer(Line(), arguments, points(3)).train();
        }).starts_with("gradient_checkpointing: "));
  arguments.gradient_checkpointing = false;
  arguments.lr_scheduler_kwargs = {{"num_cycels", 2}};
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(3)).train(); }) ==
        "lr_scheduler_kwargs: does not take 'num_cycels'");
}

TEST_CASE("trainer: a batch of another type requires the program's own loss", "[runtime]") {
  struct OneTensor {
    std::size_t size() const { return 4; }
    at::Tensor get(std::size_t) const { return torch::ones({2}); }
  };
  const TemporaryFolder folder;
  CHECK(error_of([&] { acc::Trainer(Line(), in(folder), OneTensor()).train(); }) ==
        "Trainer: the batch does not consist of inputs for the model's forward and of labels (override "
        "compute_loss)");
}

TEST_CASE("trainer: the labels determine the default loss", "[runtime]") {
  torch::manual_seed(0);
  const at::Tensor logits = torch::randn({4, 3, 5});
  at::Tensor words = torch::randint(5, {4, 3});
  words[0][0] = -100;
  CHECK(acc::default_loss(logits, words).item<double>() ==
        Approx(torch::nn::functional::cross_entropy(logits.view({12, 5}), words.view({12})).item<double>()));
  CHECK(acc::default_loss(torch::ones({3, 1}), torch::zeros({3})).item<double>() == 1);
  CHECK(error_of([&] { acc::default_loss(logits, torch::zeros({4}, torch::kLong)); }) ==
        "Trainer: there is no loss for logits [4, 3, 5] with labels [4] (override compute_loss)");
}

TEST_CASE("trainer: weight decay is not applied to biases and normalization", "[runtime]") {
  struct NetImpl : torch::nn::Module {
    NetImpl() {
      fc = register_module("fc", torch::nn::Linear(2, 2));
      scale = register_module("scale", torch::nn::LayerNorm(torch::nn::LayerNormOptions({2})));
    }
    torch::Tensor forward(torch::Tensor x) { return scale(fc(x)); }
    torch::nn::Linear fc = nullptr;
    torch::nn::LayerNorm scale = nullptr;
  };
  struct Shown : acc::Trainer<NetImpl, acc::TensorDataset<2>> {
    using Trainer::create_optimizer;
    using Trainer::Trainer;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = in(folder);
  arguments.weight_decay = 0.1;
  Shown trainer(std::make_shared<NetImpl>(), arguments, points(4));
  const auto optimizer = trainer.create_optimizer();
  REQUIRE(optimizer->param_groups().size() == 2);
  REQUIRE(optimizer->param_groups()[0].params().size() == 1);
  CHECK(optimizer->param_groups()[0].params()[0].is_same(trainer.model()->fc->weight));
  const auto decay = [&](int group) {
    return static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[group].options())
        .weight_decay();
  };
  CHECK(decay(0) == 0.1);
  CHECK(decay(1) == 0);
}

}  // namespace trainer_test
