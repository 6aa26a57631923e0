// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/gradients.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace gradients_test {

namespace {

// A letter for each batch, over `passes` passes of `batches` batches: S if the optimizer steps.
std::string trace(acc::GradientState gradients, int batches, int passes) {
  std::string steps;
  for (int pass = 0; pass < passes; ++pass) {
    for (int batch = 0; batch < batches; ++batch) {
      gradients.next_batch(batch + 1 == batches);
      steps += gradients.sync_gradients() ? 'S' : '.';
    }
    steps += ' ';
  }
  return steps;
}

}  // namespace

TEST_CASE("gradient_state: before the first batch gradients are complete", "[runtime]") {
  CHECK(acc::GradientState(4).sync_gradients());
}

TEST_CASE(
    "gradient_state: a step each num_steps batches and at the loader's end, where the count begins anew",
    "[runtime]") {
  CHECK(trace(acc::GradientState(3), 5, 2) == "..S.S ..S.S ");
  CHECK(trace(acc::GradientState(1), 3, 1) == "SSS ");
  CHECK(trace(acc::GradientState(9), 3, 2) == "..S ..S ");
}

TEST_CASE("gradient_state: without sync_with_dataloader the count continues after the loader's end",
          "[runtime]") {
  CHECK(trace(acc::GradientState(3, {.sync_with_dataloader = false}), 5, 3) == "..S.. S..S. .S..S ");
}

TEST_CASE("gradient_state: a number of steps below 1 is refused", "[runtime]") {
  CHECK_THROWS_AS(acc::GradientState(0), acc::Error);
  acc::GradientState gradients;
  CHECK_THROWS_WITH(gradients.set_num_steps(-2), "gradient_accumulation_steps: must be at least 1, not -2");
}

namespace {

// As in record_gradients.py; the last parameter has no gradient.
std::vector<at::Tensor> parameters() {
  const std::vector<std::vector<std::int64_t>> shapes{{3, 4}, {5}, {2}};
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    at::Tensor parameter = at::zeros(shapes[i]).set_requires_grad(true);
    std::vector<double> values;
    for (std::int64_t j = 0; j < parameter.numel(); ++j) {
      const auto k = static_cast<std::int64_t>(i);
      values.push_back(static_cast<double>((k * 7 + j * 3) % 11 - 5) * 0.1 * static_cast<double>(k + 1));
    }
    parameter.mutable_grad() = acc::test::numbers(values, shapes[i], at::kFloat);
    all.push_back(parameter);
  }
  all.push_back(at::zeros({1}).set_requires_grad(true));
  return all;
}

at::Tensor flat_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) flat.push_back(parameter.grad().reshape({-1}));
  }
  return at::cat(flat);
}

}  // namespace

TEST_CASE("clip_grad: norms and clipped gradients are PyTorch's", "[runtime]") {
  const auto table = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/gradients.json"));
  REQUIRE(table.at("clip").size() == 6);
  for (const auto& entry : table.at("clip")) {
    INFO(entry.dump());
    const auto all = parameters();
    const double type = std::stod(entry.at("norm_type").get<std::string>());
    const at::Tensor norm = acc::clip_grad_norm(all, entry.at("max_norm").get<double>(), type);
    CHECK(std::abs(norm.item<double>() / entry.at("norm").get<double>() - 1) < 1e-6);
    const auto clipped = entry.at("clipped").get<std::vector<double>>();
    const at::Tensor expected =
        acc::test::numbers(clipped, {static_cast<std::int64_t>(clipped.size())}, at::kFloat);
    CHECK(flat_gradients(all).allclose(expected, 1e-6, 0));
  }
}

TEST_CASE("clip_grad: values are limited on both sides", "[runtime]") {
  const auto all = parameters();
  acc::clip_grad_value(all, 0.25);
  CHECK(flat_gradients(all).equal(flat_gradients(parameters()).clamp(-0.25, 0.25)));
}

TEST_CASE("clip_grad: without gradients the norm is 0", "[runtime]") {
  CHECK(acc::clip_grad_norm({at::zeros({2}).set_requires_grad(true)}, 1).item<double>() == 0);
  acc::clip_grad_value({}, 1);
}

}  // namespace gradients_test
