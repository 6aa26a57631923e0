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
  CHECK_FALSE(results.take_predictions().predictions.defined());
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
  const acc::EvalPrediction all = results.take_predictions();
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
  EvaluationResults results(accelerator, {.predictions = true, .inputs = true, .preprocess_logits = highest});
  results.add({.loss = loss(2), .logits = torch::tensor({{1, 5, 3}}), .labels = torch::tensor({7})}, 1,
              torch::tensor({{4, 9}}));
  const acc::EvalPrediction all = results.take_predictions();
  CHECK(all.predictions.equal(torch::tensor({1})));
  CHECK(all.inputs.equal(torch::tensor({{4, 9}})));
  CHECK(results.losses().equal(torch::tensor({2.0F})));
}

}  // namespace evaluation_results_test
