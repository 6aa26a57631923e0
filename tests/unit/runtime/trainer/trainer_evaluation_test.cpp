// SPDX-License-Identifier: Apache-2.0
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/trainer/trainer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"
#include "unit/runtime/trainer/small_training.hpp"

namespace trainer_evaluation_test {

using acc::test::error_of;
using acc::test::Line;
using acc::test::LineImpl;
using acc::test::points;
using acc::test::quick_arguments;
using acc::test::TemporaryFolder;

TEST_CASE(
    "trainer evaluation: each of several evaluation sets has metrics of its name, and one row shows all",
    "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 2;
  arguments.disable_tqdm = false;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  arguments.save_strategy = acc::SaveStrategy::epoch;
  arguments.load_best_model_at_end = true;
  arguments.metric_for_best_model = "far_loss";
  const std::map<std::string, acc::TensorDataset<2>> sets = {{"far", points(12)}, {"near", points(4)}};
  acc::Trainer trainer(Line(), arguments, points(16), sets,
                       {.callbacks = {std::make_shared<acc::EarlyStoppingCallback>(1)}});
  std::string rows;
  acc::Metrics metrics;
  acc::Metrics near;
  acc::test::printed_to(stderr, [&] {
    rows = acc::test::printed_to(stdout, [&] { trainer.train(); });
    metrics = trainer.evaluate();
    near = trainer.evaluate_on(points(4));
  });
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 3);
  CHECK_THAT(rows, Catch::Matchers::Contains("Far Loss") && Catch::Matchers::Contains("Near Loss"));
  CHECK(metrics.at("eval_far_loss") == Approx(*trainer.state().best_metric));
  CHECK(metrics.at("eval_near_loss") == near.at("eval_loss"));
  CHECK_FALSE(metrics.contains("eval_loss"));
}

TEST_CASE("trainer evaluation: metrics may be computed batch by batch, the last one known as such",
          "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.per_device_eval_batch_size = 4;
  arguments.batch_eval_metrics = true;
  std::string batches;
  const auto count = [&](const acc::EvalPrediction& batch, bool compute_result) {
    batches += std::to_string(batch.predictions.numel()) + (compute_result ? "!" : ",");
    return compute_result ? acc::Metrics{{"batches", double(batches.size()) / 2}} : acc::Metrics();
  };
  acc::Trainer trainer(Line(), arguments, points(4), points(10), {.compute_batch_metrics = count});
  CHECK(trainer.evaluate().at("eval_batches") == 3);
  CHECK(batches == "4,4,2!");
  CHECK(trainer.predict(points(10)).predictions.numel() == 10);
  const auto all = [](const acc::EvalPrediction&) { return acc::Metrics(); };
  CHECK(error_of([&] { acc::Trainer(Line(), arguments, points(4), points(4), {.compute_metrics = all}); }) ==
        "batch_eval_metrics: needs what the program gives (set TrainerOptions::compute_batch_metrics instead "
        "of compute_metrics)");
}

TEST_CASE("trainer evaluation: predictions may stay in their batches", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.per_device_eval_batch_size = 4;
  arguments.eval_do_concat_batches = false;
  const auto count = [](const acc::EvalPrediction& all) {
    CHECK_FALSE(all.predictions.defined());
    return acc::Metrics{{"batches", double(all.batches.size())}};
  };
  acc::Trainer trainer(Line(), arguments, points(4), points(10), {.compute_metrics = count});
  CHECK(trainer.evaluate().at("eval_batches") == 3);
  CHECK(trainer.predict(points(10)).batches.back().label_ids.numel() == 2);
}

TEST_CASE(
    "trainer evaluation: an evaluation outside of a training may compute with weights in half precision",
    "[runtime]") {
  struct SpyImpl : LineImpl {
    at::Tensor forward(const at::Tensor& x) {
      types.insert(fc->weight.scalar_type());
      return LineImpl::forward(x);
    }
    std::set<at::ScalarType> types;
  };
  const auto type = GENERATE(at::kBFloat16, at::kHalf);
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.num_train_epochs = 1;
  arguments.eval_strategy = acc::IntervalStrategy::epoch;
  (type == at::kHalf ? arguments.fp16_full_eval : arguments.bf16_full_eval) = true;
  const auto spy = std::make_shared<SpyImpl>();
  acc::Trainer trainer(spy, arguments, points(16), points(8));
  trainer.train();
  CHECK(std::exchange(spy->types, {}) == std::set{at::kFloat});

  const at::Tensor weight = spy->fc->weight.detach().clone();
  const acc::TensorDataset<2> data = points(8);
  const acc::PredictionOutput output = trainer.predict(data);
  CHECK(spy->types == std::set{type});
  CHECK(spy->fc->weight.equal(weight));
  // As torch.nn.Module.to, with the inputs and the loss that such a model needs.
  const at::NoGradGuard no_grad;
  const at::Tensor expected =
      torch::linear(data[0].to(type), weight.to(type), spy->fc->bias.to(type)).squeeze(1).to(at::kFloat);
  CHECK(output.predictions.equal(expected));
  CHECK(output.metrics.at("test_loss") == Approx(torch::mse_loss(expected, data[1]).item<double>()));
  CHECK(trainer.evaluate().at("eval_loss") == output.metrics.at("test_loss"));
}

TEST_CASE(
    "trainer evaluation: in an evaluation in half precision labels keep their type, and errors leave the "
    "weights",
    "[runtime]") {
  struct OwnLossImpl : LineImpl {
    std::pair<at::Tensor, std::vector<at::Tensor>> forward(const at::Tensor& x, const at::Tensor& y) {
      if (fails) throw std::runtime_error("no memory");
      at::Tensor predictions = LineImpl::forward(x);
      label_type = y.scalar_type();
      return {(predictions - y).abs().mean(), {predictions}};
    }
    bool fails = false;
    at::ScalarType label_type = at::kLong;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.bf16_full_eval = true;
  const auto net = std::make_shared<OwnLossImpl>();
  const at::Tensor weight = net->fc->weight.detach().clone();
  acc::Trainer trainer(net, arguments, points(4), points(8));
  const acc::PredictionOutput output = trainer.predict(points(8));
  CHECK(net->label_type == at::kFloat);
  CHECK(output.predictions.scalar_type() == at::kFloat);
  CHECK(output.predictions.equal(output.predictions.to(at::kBFloat16).to(at::kFloat)));
  net->fails = true;
  CHECK_THROWS_AS(trainer.evaluate(), std::runtime_error);
  CHECK(net->fc->weight.equal(weight));
}

TEST_CASE("trainer evaluation: weights in half precision are not saved, those of the model afterwards are",
          "[runtime]") {
  struct Saver : acc::TrainerCallback {
    void on_prediction_step(const Arguments&, State&, Control&, std::optional<std::size_t>) override {
      errors.insert(error_of([&] { save(); }));
    }
    void on_evaluate(const Arguments&, State&, Control&, const acc::Metrics&) override { save(); }
    std::function<void()> save;
    std::set<std::string> errors;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.bf16_full_eval = true;
  const auto saver = std::make_shared<Saver>();
  acc::Trainer trainer(Line(), arguments, points(4), points(8), {.callbacks = {saver}});
  const std::string text =
      ": the weights are in half precision while this evaluation lasts (save before or after it, as in "
      "on_evaluate or on_predict; or leave out bf16_full_eval and fp16_full_eval)";
  saver->save = [&] { trainer.save_model(folder.path() / "model"); };
  trainer.evaluate();
  CHECK(std::exchange(saver->errors, {}) == std::set{"save_model" + text});
  CHECK(acc::read_safetensors(folder.path() / "model" / "model.safetensors")
            .tensors.at("fc.weight")
            .scalar_type() == at::kFloat);
  saver->save = [&] { trainer.accelerator().save_state(folder.path() / "state"); };
  trainer.evaluate();
  CHECK(std::exchange(saver->errors, {}) == std::set{"save_state" + text});
  CHECK(std::filesystem::exists(folder.path() / "state" / "model.safetensors"));
  saver->save = [&] { trainer.accelerator().load_state(folder.path() / "state"); };
  trainer.evaluate();
  CHECK(saver->errors ==
        std::set<std::string>{
            "load_state: the weights are in half precision while this evaluation lasts (load before or after "
            "it, as in on_evaluate or on_predict; or leave out bf16_full_eval and fp16_full_eval)"});
}

TEST_CASE(
    "trainer evaluation: weights in half precision are not saved after an evaluation within the evaluation",
    "[runtime]") {
  struct Saver : acc::TrainerCallback {
    void on_prediction_step(const Arguments&, State&, Control&, std::optional<std::size_t>) override {
      if (std::exchange(is_within, true)) return;
      evaluate();
      error = error_of(save);
    }
    std::function<void()> evaluate;
    std::function<void()> save;
    std::string error;
    bool is_within = false;
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.bf16_full_eval = true;
  const auto saver = std::make_shared<Saver>();
  acc::Trainer trainer(Line(), arguments, points(4), points(8), {.callbacks = {saver}});
  saver->evaluate = [&] { trainer.evaluate(); };
  saver->save = [&] { trainer.save_model(folder.path() / "model"); };
  trainer.evaluate();
  CHECK(saver->error.starts_with("save_model: the weights are in half precision"));
  saver->save();
  CHECK(std::filesystem::exists(folder.path() / "model" / "model.safetensors"));
}

TEST_CASE("trainer evaluation: an evaluation in half precision converts lists in a batch, too", "[runtime]") {
  struct ListImpl : LineImpl {
    at::Tensor forward(const std::vector<at::Tensor>& inputs) { return LineImpl::forward(inputs[0]); }
  };
  struct Lists {
    std::size_t size() const { return 4; }
    std::pair<std::vector<at::Tensor>, at::Tensor> get_batch(c10::ArrayRef<std::size_t> indices) const {
      const auto rows = static_cast<std::int64_t>(indices.size());
      return {{torch::ones({rows, 2})}, torch::ones({rows})};
    }
  };
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
  arguments.bf16_full_eval = true;
  acc::Trainer trainer(std::make_shared<ListImpl>(), arguments, Lists(), Lists());
  const at::Tensor predictions = trainer.predict(Lists()).predictions;
  CHECK(predictions.equal(predictions.to(at::kBFloat16).to(at::kFloat)));
}

TEST_CASE("trainer evaluation: predictions are in the order of the data, each once", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = quick_arguments(folder);
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

}  // namespace trainer_evaluation_test
