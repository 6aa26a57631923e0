// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/evaluation_results.hpp"

#include <torch/torch.h>

#include <cmath>

#include "support/catch.hpp"

namespace evaluation_results_test {

using acc::detail::EvaluationResults;

namespace {

at::Tensor loss(double value) {
  return torch::tensor(value);
}

}  // namespace

TEST_CASE("evaluation_results: a batch's loss counts as often as it has rows", "[runtime]") {
  const acc::Accelerator accelerator({.cpu = true});
  EvaluationResults results(accelerator, {});
  CHECK_FALSE(results.mean_loss(true).has_value());
  results.add({.loss = loss(1)}, 3);
  results.add({.loss = loss(5)}, 1);
  CHECK(results.mean_loss(true) == 2);
  CHECK_FALSE(results.concatenated().predictions.defined());
}

TEST_CASE("evaluation_results: losses that are not finite are left out on request, unless all are",
          "[runtime]") {
  const acc::Accelerator accelerator({.cpu = true});
  EvaluationResults results(accelerator, {});
  results.add({.loss = loss(NAN)}, 1);
  CHECK(std::isnan(*results.mean_loss(true)));
  results.add({.loss = loss(5)}, 1);
  CHECK(results.mean_loss(true) == 5);
  CHECK(std::isnan(*results.mean_loss(false)));
}

TEST_CASE("evaluation_results: rows of different widths are padded on the right", "[runtime]") {
  const acc::Accelerator accelerator({.cpu = true});
  EvaluationResults results(accelerator, {.predictions = true});
  results.add({.logits = torch::tensor({{1, 2}}), .labels = torch::tensor({7})}, 1);
  results.add({.logits = torch::tensor({{3, 4, 5}}), .labels = torch::tensor({8})}, 1);
  const acc::EvalPrediction all = results.concatenated();
  CHECK(all.predictions.equal(torch::tensor({{1, 2, -100}, {3, 4, 5}})));
  CHECK(all.label_ids.equal(torch::tensor({7, 8})));
}

TEST_CASE("evaluation_results: logits are kept as they were preprocessed, and inputs and losses on request",
          "[runtime]") {
  const acc::Accelerator accelerator({.cpu = true});
  const auto highest = [](const at::Tensor& logits, const at::Tensor& labels) {
    CHECK(labels.equal(torch::tensor({7})));
    return logits.argmax(-1);
  };
  EvaluationResults results(
      accelerator, {.predictions = true, .inputs = true, .losses = true, .preprocess_logits = highest});
  results.add({.loss = loss(2), .logits = torch::tensor({{1, 5, 3}}), .labels = torch::tensor({7})}, 1,
              torch::tensor({{4, 9}}));
  const acc::EvalPrediction all = results.concatenated();
  CHECK(all.predictions.equal(torch::tensor({1})));
  CHECK(all.inputs.equal(torch::tensor({{4, 9}})));
  CHECK(all.losses.equal(torch::tensor({2.0F})));
}

TEST_CASE("evaluation_results: each batch is also there on its own, unless it is not kept", "[runtime]") {
  const acc::Accelerator accelerator({.cpu = true});
  const bool keeps = GENERATE(true, false);
  EvaluationResults results(accelerator, {.predictions = true, .after_batch = keeps});
  const acc::EvalPrediction batch =
      results.add({.loss = loss(3), .logits = torch::tensor({{1, 2}}), .labels = torch::tensor({7})}, 1);
  CHECK(batch.predictions.equal(torch::tensor({{1, 2}})));
  CHECK(batch.label_ids.equal(torch::tensor({7})));
  CHECK_FALSE(batch.losses.defined());
  CHECK(results.batches().size() == (keeps ? 1 : 0));
  CHECK(results.concatenated().predictions.defined() == keeps);
  CHECK(results.mean_loss(true) == 3);
}

}  // namespace evaluation_results_test
