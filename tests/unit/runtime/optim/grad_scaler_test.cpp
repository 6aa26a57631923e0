// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/grad_scaler.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/sgd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace grad_scaler_test {

namespace {

using acc::test::error_of;
using nlohmann::json;

const json& recorded() {
  static const json table = json::parse(acc::read_file(ACC_TEST_DATA "/runtime/gradients.json"));
  return table;
}

struct Setup {
  explicit Setup(acc::GradScalerOptions options = {}) : scaler(options) {}

  void backward(double gradient) {
    weight.mutable_grad().reset();
    scaler.scale((weight * gradient).sum()).backward();
  }

  at::Tensor weight = at::zeros({1}).set_requires_grad(true);
  torch::optim::SGD optimizer{{weight}, 1e-3};
  acc::GradScaler scaler;
};

}  // namespace

TEST_CASE("grad_scaler: scales, counts and skipped steps equal PyTorch's", "[runtime]") {
  REQUIRE(recorded().at("scaler").size() == 4);
  for (const auto& [name, entry] : recorded().at("scaler").items()) {
    INFO(name);
    const json& options = entry.at("options");
    Setup setup({.init_scale = options.at("init_scale").get<double>(),
                 .growth_factor = options.at("growth_factor").get<double>(),
                 .backoff_factor = options.at("backoff_factor").get<double>(),
                 .growth_interval = options.at("growth_interval").get<std::int64_t>()});
    std::size_t step = 0;
    for (const json& point : entry.at("points")) {
      setup.backward(std::stod(entry.at("gradients").at(step++).get<std::string>()));
      const bool stepped = setup.scaler.step(setup.optimizer);
      setup.scaler.update();
      INFO("step " << step);
      CHECK(setup.scaler.get_scale() == point.at(0).get<double>());
      CHECK(setup.scaler.state().growth_tracker == point.at(1).get<std::int64_t>());
      CHECK(stepped != point.at(2).get<bool>());
    }
  }
}

TEST_CASE("grad_scaler: the defaults are PyTorch's", "[runtime]") {
  const json& defaults = recorded().at("scaler_defaults");
  CHECK(acc::GradScaler().state() ==
        acc::GradScalerState{.scale = defaults.at("scale").get<double>(),
                             .growth_factor = defaults.at("growth_factor").get<double>(),
                             .backoff_factor = defaults.at("backoff_factor").get<double>(),
                             .growth_interval = defaults.at("growth_interval").get<std::int64_t>(),
                             .growth_tracker = defaults.at("_growth_tracker").get<std::int64_t>()});
}

TEST_CASE("grad_scaler: a restored state continues, before and after the first loss", "[runtime]") {
  Setup saved({.init_scale = 8, .growth_interval = 2});
  saved.backward(1);
  saved.scaler.step(saved.optimizer);
  saved.scaler.update();
  Setup loaded;
  if (GENERATE(false, true)) loaded.backward(1);
  loaded.scaler.load_state(saved.scaler.state());
  CHECK(loaded.scaler.state() == saved.scaler.state());
  loaded.backward(1);
  CHECK(loaded.weight.grad().item<double>() == 8);
  CHECK(loaded.scaler.step(loaded.optimizer));
  loaded.scaler.update();
  CHECK(loaded.scaler.get_scale() == 16);
}

TEST_CASE("grad_scaler: gradients are divided by the scale of their loss, also after an update",
          "[runtime]") {
  Setup setup({.init_scale = 4, .growth_interval = 1});
  const at::Tensor other = at::zeros({1}).set_requires_grad(true);
  torch::optim::SGD second({other}, 1.0);
  setup.scaler.scale((setup.weight * 3 + other * 5).sum()).backward();
  setup.scaler.step(setup.optimizer);
  setup.scaler.update();
  CHECK(setup.scaler.get_scale() == 8);
  setup.scaler.step(second);
  CHECK(other.item<double>() == -5);
  setup.scaler.update();
}

TEST_CASE("grad_scaler: unscaled gradients stay unscaled after another optimizer's update", "[runtime]") {
  Setup setup({.init_scale = 4});
  const at::Tensor other = at::zeros({1}).set_requires_grad(true);
  torch::optim::SGD second({other}, 1.0);
  setup.scaler.scale((setup.weight + other * 5).sum()).backward();
  setup.scaler.unscale(setup.optimizer);
  setup.scaler.unscale(second);
  CHECK(other.grad().item<double>() == 5);
  setup.scaler.step(setup.optimizer);
  setup.scaler.update();
  setup.scaler.step(second);
  CHECK(other.item<double>() == -5);
}

TEST_CASE("grad_scaler: gradients of a new backward are unscaled, though those before it were", "[runtime]") {
  Setup setup({.init_scale = 4});
  const at::Tensor other = at::zeros({1}).set_requires_grad(true);
  torch::optim::SGD second({other}, 1.0);
  const auto backward = [&](const at::Tensor& loss) {
    setup.scaler.scale(loss).backward();
    setup.scaler.after_backward();
  };
  backward((setup.weight + other * 5).sum());
  setup.scaler.unscale(setup.optimizer);
  setup.scaler.unscale(second);
  // The loss of one of them alone: what the other one has stays.
  const bool in_place = GENERATE(false, true);
  if (in_place) {
    other.mutable_grad().zero_();
  } else {
    other.mutable_grad().reset();
  }
  backward((other * 3).sum());
  CHECK(setup.scaler.is_unscaled(setup.optimizer));
  CHECK_FALSE(setup.scaler.is_unscaled(second));
  setup.scaler.step(setup.optimizer);
  setup.scaler.step(second);
  setup.scaler.update();
  CHECK(setup.weight.item<double>() == Approx(-1e-3));
  CHECK(other.item<double>() == -3);
}

TEST_CASE("grad_scaler: an optimizer that ended before its step is not looked at, nor taken for the next one",
          "[runtime]") {
  Setup setup({.init_scale = 4});
  // Both at one address.
  std::optional<torch::optim::SGD> optimizer;
  optimizer.emplace(std::vector{setup.weight}, 1.0);
  setup.backward(1);
  setup.scaler.unscale(*optimizer);
  optimizer.reset();

  const bool has_same_parameter = GENERATE(false, true);
  at::Tensor weight = has_same_parameter ? setup.weight : at::zeros({1}).set_requires_grad(true);
  if (!has_same_parameter && GENERATE(false, true)) setup.weight.reset();
  weight.mutable_grad().reset();
  setup.scaler.scale((weight * 3).sum()).backward();
  setup.scaler.after_backward();
  optimizer.emplace(std::vector{weight}, 1.0);
  CHECK_FALSE(setup.scaler.is_unscaled(*optimizer));
  CHECK(setup.scaler.step(*optimizer));
  setup.scaler.update();
  CHECK(weight.item<double>() == -3);
}

TEST_CASE("grad_scaler: a step that threw may be made again", "[runtime]") {
  struct Throwing : torch::optim::SGD {
    using SGD::SGD;
    at::Tensor step(LossClosure closure = nullptr) override {
      if (std::exchange(throws, false)) throw std::runtime_error("no memory");
      return SGD::step(std::move(closure));
    }
    bool throws = true;
  };
  Setup setup({.init_scale = 4});
  Throwing optimizer({setup.weight}, 1.0);
  setup.backward(3);
  CHECK_THROWS_AS(setup.scaler.step(optimizer), std::runtime_error);
  CHECK(setup.scaler.step(optimizer));
  setup.scaler.update();
  CHECK(setup.weight.item<double>() == -3);
}

TEST_CASE("grad_scaler: calls in the wrong order are refused", "[runtime]") {
  Setup setup;
  CHECK(error_of([&] { setup.scaler.update(); }) ==
        "GradScaler: no optimizer has stepped since the last update");
  CHECK(error_of([&] { setup.scaler.step(setup.optimizer); }) ==
        "GradScaler: no loss has been scaled yet (call accelerator.backward(loss) first)");
  setup.backward(1);
  setup.scaler.unscale(setup.optimizer);
  CHECK(error_of([&] { setup.scaler.unscale(setup.optimizer); }) ==
        "GradScaler: the optimizer's gradients have already been unscaled since the last update");
  setup.scaler.step(setup.optimizer);
  CHECK(error_of([&] { setup.scaler.step(setup.optimizer); }) ==
        "GradScaler: the optimizer has already stepped since the last update");
  setup.scaler.update();
  setup.weight.mutable_grad().reset();
  CHECK(error_of([&] {
          setup.scaler.step(setup.optimizer);
        }).starts_with("GradScaler: the optimizer's parameters have no gradients"));
  setup.weight = at::zeros({1}, at::kHalf).set_requires_grad(true);
  setup.weight.mutable_grad() = at::zeros({1}, at::kHalf);
  torch::optim::SGD half({setup.weight}, 1.0);
  CHECK(error_of([&] { setup.scaler.unscale(half); }).starts_with("GradScaler: the gradients are fp16"));
  CHECK_THROWS_AS(acc::GradScaler({.growth_factor = 1}), acc::Error);
  CHECK_THROWS_AS(acc::GradScaler({.backoff_factor = 1}), acc::Error);
}

TEST_CASE("grad_scaler: when disabled it does not scale and always steps", "[runtime]") {
  Setup setup({.enabled = false});
  setup.backward(2);
  CHECK(setup.weight.grad().item<double>() == 2);
  CHECK(setup.scaler.step(setup.optimizer));
  setup.scaler.update();
  CHECK(setup.scaler.get_scale() == 1);
}

}  // namespace grad_scaler_test
