// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"
#include "unit/runtime/trainer/small_training.hpp"

namespace trainer_test {

using acc::test::error_of;
using acc::test::Line;
using acc::test::LineImpl;
using acc::test::points;
using acc::test::quick_arguments;
using acc::test::Stream;
using acc::test::TemporaryFolder;

namespace {

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
  acc::TrainingArguments arguments = quick_arguments(folder);
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
  acc::TrainingArguments arguments = quick_arguments(folder);
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
  acc::TrainingArguments arguments = quick_arguments(folder);
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
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.max_steps = 8;
  arguments.logging_steps = 1;
  Own trainer(Line(), arguments, points(16));
  trainer.train();
  CHECK(trainer.state().log_history[3].at("learning_rate") == Approx(0.5));
  CHECK(trainer.state().log_history[4].at("learning_rate") == Approx(0.05));
}

TEST_CASE("trainer: a loss of one element may have dimensions", "[runtime]") {
  struct Own : acc::Trainer<LineImpl, acc::TensorDataset<2>> {
    using Trainer::Trainer;
    acc::LossOutput compute_loss(acc::Model<LineImpl>& model, Batch& batch) override {
      return {.loss = (model(batch[0]) - batch[1]).square().mean().reshape({1}).expand(sizes)};
    }
    std::vector<std::int64_t> sizes = {1};
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.max_steps = 2;
  Own trainer(Line(), arguments, points(8));
  CHECK(trainer.train().training_loss > 0);
  trainer.sizes = {2};
  CHECK_THAT(error_of([&] { trainer.train(); }),
             Catch::Matchers::StartsWith("compute_loss: the loss has the sizes [2]"));
}

TEST_CASE("trainer: gradients that the optimizer does not step do not add up", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.max_steps = 3;
  arguments.logging_steps = 1;
  arguments.per_device_train_batch_size = 12;
  Line line = acc::test::zeros();
  // Without a rate, the gradients of all steps are equal.
  const auto sgd = std::make_shared<torch::optim::SGD>(std::vector<at::Tensor>{line->fc->bias}, 0.);
  acc::Trainer trainer(line, arguments, points(12), {.optimizer = sgd});
  trainer.train();
  const auto& log = trainer.state().log_history;
  CHECK(log[0].at("grad_norm") > 0);
  for (const std::size_t step : {1, 2}) CHECK(log[step].at("grad_norm") == Approx(log[0].at("grad_norm")));
}

TEST_CASE("trainer: samples of similar lengths are read together, those of a step", "[runtime]") {
  const std::vector<std::size_t> lengths = {3, 1, 4, 1, 5, 9, 2, 6};
  struct Data {
    std::vector<std::size_t> sizes;
    std::shared_ptr<std::vector<std::size_t>> read = std::make_shared<std::vector<std::size_t>>();
    std::size_t size() const { return sizes.size(); }
    std::vector<std::size_t> lengths() const { return sizes; }
    std::array<at::Tensor, 2> get_batch(c10::ArrayRef<std::size_t> indices) const {
      read->insert(read->end(), indices.begin(), indices.end());
      return points(8).get_batch(indices);
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  arguments.per_device_train_batch_size = 1;
  arguments.gradient_accumulation_steps = 2;
  arguments.train_sampling_strategy = acc::SamplingStrategy::group_by_length;
  const Data data{lengths};
  acc::Trainer(Line(), arguments, data).train();
  CHECK(data.read->front() == 5);
  CHECK(*data.read == acc::LengthGroupedSampler(lengths, 2).order({.seed = 42}));
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(4)).train(); }) ==
        "train_sampling_strategy: the training data does not say how long its samples are (give it "
        "lengths())");
}

TEST_CASE("trainer: a program's own loaders are used", "[runtime]") {
  struct Own : acc::Trainer<LineImpl, acc::TensorDataset<2>> {
    using Trainer::Trainer;
    TrainLoader create_train_loader(acc::TensorDataset<2> data) override {
      acc::DataLoaderOptions options = loader_options(true);
      options.shuffle = false;
      options.sampler = std::make_shared<acc::SubsetRandomSampler>(std::vector<std::size_t>{1, 2, 3, 5});
      return TrainLoader(std::move(data), options);
    }
    EvalLoader create_eval_loader(acc::TensorDataset<2> data) override {
      return EvalLoader(std::move(data), {.batch_size = 3, .drop_last = true});
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  Own trainer(Line(), arguments, points(16), points(8));
  CHECK(trainer.train().global_step == 1);
  CHECK(trainer.predict(points(8)).predictions.numel() == 6);
}

TEST_CASE("trainer: a model that takes the labels, too, has its own loss", "[runtime]") {
  struct OwnLossImpl : LineImpl {
    std::pair<at::Tensor, std::vector<at::Tensor>> forward(const at::Tensor& x, const at::Tensor& y) {
      at::Tensor predictions = LineImpl::forward(x);
      return {(predictions - y).abs().mean(), {predictions.detach()}};
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 20;
  acc::Trainer trainer(std::make_shared<OwnLossImpl>(), arguments, points(16), points(8));
  const acc::PredictionOutput before = trainer.predict(points(8));
  CHECK(before.metrics.at("test_loss") ==
        Approx((before.predictions - before.label_ids).abs().mean().item<double>()));
  trainer.train();
  CHECK(trainer.evaluate().at("eval_loss") < before.metrics.at("test_loss") / 2);
  arguments.label_smoothing_factor = 0.1;
  acc::Trainer smoothing(std::make_shared<OwnLossImpl>(), arguments, points(16));
  CHECK_THAT(error_of([&] { smoothing.train(); }),
             Catch::Matchers::Contains("label_smoothing_factor: smooths labels for the default loss"));
}

TEST_CASE("trainer: a training that threw has ended", "[runtime]") {
  struct SpyImpl : LineImpl {
    at::Tensor forward(const at::Tensor& x) {
      type = fc->weight.scalar_type();
      return LineImpl::forward(x);
    }
    at::ScalarType type = at::kFloat;
  };
  struct Throwing : acc::TrainerCallback {
    void on_step_end(const Arguments&, State&, Control&) override { throw std::runtime_error("no memory"); }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.bf16_full_eval = true;
  const auto spy = std::make_shared<SpyImpl>();
  acc::Trainer trainer(spy, arguments, points(8), points(8), {.callbacks = {std::make_shared<Throwing>()}});
  CHECK_THROWS_AS(trainer.train(), std::runtime_error);
  trainer.evaluate();
  CHECK(spy->type == at::kBFloat16);
}

TEST_CASE("trainer: a training in fp16 may be repeated after one that threw between backward and step",
          "[runtime]") {
  struct Throwing : acc::TrainerCallback {
    void on_pre_optimizer_step(const Arguments&, State&, Control&) override {
      if (std::exchange(throws, false)) throw std::runtime_error("no memory");
    }
    bool throws = true;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.fp16 = true;
  arguments.max_steps = 3;
  const auto trained = [&](bool throws) {
    const auto callback = std::make_shared<Throwing>();
    callback->throws = throws;
    const Line line = acc::test::zeros();
    acc::Trainer trainer(line, arguments, points(8), acc::TrainerOptions{.callbacks = {callback}});
    if (throws) CHECK_THROWS_AS(trainer.train(), std::runtime_error);
    CHECK(trainer.train().global_step == 3);
    return line->fc->weight.detach();
  };
  CHECK(trained(true).equal(trained(false)));
}

TEST_CASE("trainer: metrics have the memory on request, where transformers has it", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.skip_memory_metrics = false;
  acc::Trainer trainer(Line(), arguments, points(16), points(8));
  const acc::Metrics trained = trainer.train().metrics;
  const acc::Metrics evaluated = trainer.evaluate();
  const acc::Metrics predicted = trainer.predict(points(8)).metrics;
  CHECK(trained.contains("before_init_mem_cpu"));
  CHECK(trained.contains("init_mem_cpu_alloc_delta"));
  CHECK(trained.contains("train_mem_cpu_alloc_delta"));
  CHECK(evaluated.contains("eval_mem_cpu_alloc_delta"));
  CHECK_FALSE(evaluated.contains("before_init_mem_cpu"));
  CHECK(predicted.contains("test_mem_cpu_alloc_delta"));
  // Of the log only the training's entry has it.
  const auto& history = trainer.state().log_history;
  for (std::size_t i = 0; i < history.size(); ++i) {
    CHECK(history[i].contains("train_mem_cpu_alloc_delta") == history[i].contains("train_loss"));
    CHECK_FALSE(history[i].contains("eval_mem_cpu_alloc_delta"));
  }
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
  acc::TrainingArguments arguments = quick_arguments(folder);
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

TEST_CASE("trainer: the evaluation before the first step is not the best", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 2;
  arguments.eval_on_start = true;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::best;
  arguments.metric_for_best_model = "m";
  const auto metric = std::make_shared<double>(4);
  acc::Trainer trainer(
      Line(), arguments, points(4), points(4),
      {.compute_metrics = [=](const acc::EvalPrediction&) { return acc::Metrics{{"m", --*metric}}; }});
  trainer.train();
  CHECK(trainer.state().best_metric == 2);
  CHECK(trainer.state().best_model_checkpoint == arguments.output_dir / "checkpoint-1");
}

TEST_CASE("trainer: an iterable data set without samples ends the training", "[runtime]") {
  struct Empty : Stream {
    std::optional<std::tuple<at::Tensor, at::Tensor>> next() { return std::nullopt; }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.max_steps = 30;
  CHECK(acc::Trainer(Line(), arguments, Empty()).train().global_step == 0);
}

TEST_CASE("trainer: a program's own optimizer begins each training with its own rate", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
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

TEST_CASE("trainer: invalid data and arguments are reported before the first step", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
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
        }).find("nothing in forward calls acc::checkpoint") != std::string::npos);
  arguments.gradient_checkpointing = false;
  arguments.lr_scheduler_kwargs = {{"num_cycels", 2}};
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(3)).train(); }) ==
        "lr_scheduler_kwargs: does not take 'num_cycels'");
}

TEST_CASE("trainer: a checkpoint that cannot be written is refused before the first step", "[runtime]") {
  struct Steps : acc::TrainerCallback {
    void on_step_begin(const Arguments&, State&, Control&) override { FAIL("a step begins"); }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  const auto error_in_training = [&] {
    return error_of([&] {
      acc::Trainer(Line(), arguments, points(4),
                   acc::TrainerOptions{.callbacks = {std::make_shared<Steps>()}})
          .train();
    });
  };
  SECTION("output_dir") {
    arguments.output_dir = folder.write("file", "") / "run";
    arguments.save_strategy = GENERATE(acc::SaveStrategy::no, acc::SaveStrategy::epoch);
    arguments.enable_jit_checkpoint = arguments.save_strategy == acc::SaveStrategy::no;
    CHECK(error_in_training().find("file cannot be written: Not a directory") != std::string::npos);
  }
}

TEST_CASE("trainer: activation checkpointing is asked of the module under either name", "[runtime]") {
  struct NewLine : acc::test::LineImpl {
    void activation_checkpointing_enable() { asked = true; }
    bool asked = false;
  };
  struct OldLine : acc::test::LineImpl {
    void gradient_checkpointing_enable() { asked = true; }
    bool asked = false;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.activation_checkpointing = true;
  const auto new_line = std::make_shared<NewLine>();
  acc::Trainer(new_line, arguments, points(4)).train();
  CHECK(new_line->asked);
  const auto old_line = std::make_shared<OldLine>();
  acc::Trainer(old_line, arguments, points(4)).train();
  CHECK(old_line->asked);
}

TEST_CASE("trainer: the elements of the first tensor of each batch are counted", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.include_num_input_tokens_seen = acc::TokenCount::all;
  arguments.num_train_epochs = 2;
  arguments.logging_steps = 1;
  acc::Trainer trainer(Line(), arguments, points(6));
  trainer.train();
  CHECK(trainer.state().num_input_tokens_seen == 24);
  CHECK(trainer.state().log_history[0].at("num_input_tokens_seen") == 8);
  CHECK(trainer.state().log_history[0].contains("train_tokens_per_second"));
}

TEST_CASE("trainer: padding is not counted as tokens, on request", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  arguments.include_num_input_tokens_seen = acc::TokenCount::non_padding;
  // 0, 1/7 ... 6/7, 0, 1/7 ...
  acc::Trainer trainer(Line(), arguments, points(8), acc::TrainerOptions{.pad_token_id = 0});
  trainer.train();
  CHECK(trainer.state().num_input_tokens_seen == 13);
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(8)); }) ==
        "include_num_input_tokens_seen: non_padding: needs what the program gives (set "
        "TrainerOptions::pad_token_id)");
}

TEST_CASE("trainer: a smaller batch is taken when memory runs out, on request", "[runtime]") {
  struct Hungry : LineImpl {
    at::Tensor forward(at::Tensor x) {
      if (is_training() && x.size(0) > 3) throw std::bad_alloc();
      return LineImpl::forward(x);
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  CHECK_THROWS_AS(acc::Trainer(std::make_shared<Hungry>(), arguments, points(6)).train(), std::bad_alloc);
  arguments.auto_find_batch_size = true;
  arguments.disable_tqdm = false;
  acc::Trainer trainer(std::make_shared<Hungry>(), arguments, points(6));
  const std::string notes = acc::test::printed_to(stderr, [&] { trainer.train(); });
  CHECK(trainer.state().global_step == 2);
  CHECK(trainer.state().train_batch_size == 3);
  CHECK_THAT(notes, Catch::Matchers::Contains(
                        "Out of memory: beginning again with per_device_train_batch_size 3\n"));
}

TEST_CASE("trainer: what needs a CUDA device is refused without one", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.use_cpu = true;
  arguments.tf32 = true;
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(4)); }) ==
        "tf32: there is no CUDA device (leave it out)");
}

TEST_CASE("trainer: a batch of another type requires the program's own loss", "[runtime]") {
  struct OneTensor {
    std::size_t size() const { return 4; }
    at::Tensor get(std::size_t) const { return torch::ones({2}); }
  };
  const TemporaryFolder folder;
  CHECK(error_of([&] { acc::Trainer(Line(), quick_arguments(folder), OneTensor()).train(); }) ==
        "Trainer: the batch does not consist of inputs for the model's forward and of labels (override "
        "compute_loss)");
}

}  // namespace trainer_test
