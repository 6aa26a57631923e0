// SPDX-License-Identifier: Apache-2.0
// Saving and resuming on devices.
#include <ATen/ops/dropout.h>
#include <ATen/ops/randn.h>
#include <torch/optim/adam.h>

#include <optional>

#include "job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job and its net

namespace {

// A training whose numbers depend on everything that a checkpoint has to contain.
class Training {
 public:
  Training() : accelerator_(job_options()) {
    acc::set_seed(11, {.deterministic = true});
    Net net;
    auto [model, optimizer] = accelerator_.prepare(net, torch::optim::Adam(net->parameters(), 0.01));
    model_.emplace(std::move(model));
    optimizer_.emplace(std::move(optimizer));
  }

  /// The loss of a step on random numbers that the device generates.
  double step() {
    const at::Tensor x = at::randn({16, 8}, accelerator_.device());
    optimizer_->zero_grad();
    const at::Tensor loss = (at::dropout((*model_)(x), 0.5, /*train=*/true) - 1).square().mean();
    accelerator_.backward(loss);
    optimizer_->step();
    return loss.item<double>();
  }
  std::vector<double> steps(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) losses.push_back(step());
    return losses;
  }

  acc::Accelerator& accelerator() { return accelerator_; }
  acc::Model<NetImpl>& model() { return *model_; }

 private:
  acc::Accelerator accelerator_;
  std::optional<acc::Model<NetImpl>> model_;
  std::optional<acc::Optimizer> optimizer_;
};

}  // namespace

TEST_CASE("checkpoint: a loaded training continues bit for bit, including the device's random numbers",
          "[gpu]") {
  const auto folder = shared_folder() / "state";
  Training training;
  training.steps(3);
  training.accelerator().save_state(folder);
  const std::vector<double> uninterrupted = training.steps(4);

  training.accelerator().load_state(folder);
  CHECK(training.steps(4) == uninterrupted);
}

TEST_CASE("checkpoint: saved in the background it is the state of the call", "[gpu]") {
  const auto folder = shared_folder() / "beside";
  Training training;
  training.steps(3);
  training.accelerator().save_state(folder, {.background = true});
  const std::vector<double> uninterrupted = training.steps(4);

  training.accelerator().load_state(folder);
  CHECK(training.steps(4) == uninterrupted);
}

TEST_CASE("checkpoint: a new program resumes the training bit for bit", "[gpu]") {
  const auto folder = shared_folder() / "state_of_another";
  std::vector<double> uninterrupted;
  {
    Training training;
    training.steps(3);
    training.accelerator().save_state(folder);
    uninterrupted = training.steps(4);
  }
  Training training;
  training.steps(1);
  training.accelerator().load_state(folder);
  CHECK(training.steps(4) == uninterrupted);
}

TEST_CASE("checkpoint: weights saved from a device are loaded to it", "[gpu]") {
  const auto folder = shared_folder() / "weights";
  Training training;
  training.steps(2);
  training.accelerator().save_model(training.model(), folder);
  training.accelerator().wait_for_everyone();
  auto other = training.accelerator().prepare(Net());
  training.accelerator().load_model(other, folder);
  const auto expected = training.model()->parameters();
  const auto loaded = other->parameters();
  REQUIRE(loaded.size() == expected.size());
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    CHECK(loaded[i].device() == job().device());
    CHECK(loaded[i].equal(expected[i]));
  }
}
