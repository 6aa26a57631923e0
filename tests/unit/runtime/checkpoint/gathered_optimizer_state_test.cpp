// SPDX-License-Identifier: Apache-2.0
// Shards of several processes are gathered by runtime/sharded_checkpoints_test and parity/sharded_states.
#include "acc/runtime/checkpoint/gathered_optimizer_state.hpp"

#include <ATen/ops/arange.h>
#include <torch/optim/adam.h>

#include <memory>
#include <string>

#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_shards.hpp"

namespace gathered_optimizer_state_test {

namespace {

using acc::PtValue;
using torch::optim::Adam;
using torch::optim::AdamOptions;
using Shards = acc::test::LoneShards<Adam>;

at::Tensor gradient_of(const at::Tensor& parameter) {
  return at::arange(parameter.numel(), parameter.options().requires_grad(false)).reshape(parameter.sizes());
}

// A layer of this width, sharded, after a step.
std::unique_ptr<Shards> stepped(std::int64_t width = 2) {
  auto shards = std::make_unique<Shards>(torch::nn::Linear(width, 3), AdamOptions(0.1));
  for (std::size_t piece = 0; piece < 2; ++piece)
    shards->part(piece).mutable_grad() = gradient_of(shards->part(piece));
  shards->native.step();
  return shards;
}

const at::Tensor& average_of(const PtValue& state, std::int64_t parameter) {
  return *state.find("state")->find(parameter)->find("exp_avg")->get_if<at::Tensor>();
}

}  // namespace

TEST_CASE("gathered optimizer state: it is that of an optimizer whose model is not sharded", "[runtime]") {
  torch::nn::Linear whole(2, 3);
  Adam optimizer(whole->parameters(), AdamOptions(0.1));
  for (at::Tensor& parameter : whole->parameters()) parameter.mutable_grad() = gradient_of(parameter);
  optimizer.step();
  const PtValue expected = acc::detail::optimizer_state(optimizer);

  const auto shards = stepped();
  const PtValue state = acc::detail::gathered_optimizer_state(shards->optimizer, true);
  CHECK(acc::detail::to_json(*state.find("param_groups")) ==
        acc::detail::to_json(*expected.find("param_groups")));
  for (const std::int64_t parameter : {0, 1})
    CHECK(average_of(state, parameter).equal(average_of(expected, parameter)));
  CHECK(acc::detail::gathered_optimizer_state(shards->optimizer, false).is_none());
}

TEST_CASE("gathered optimizer state: it is loaded into shards again, if the shapes fit", "[runtime]") {
  const auto saved = stepped();
  const PtValue state = acc::detail::gathered_optimizer_state(saved->optimizer, true);
  Shards loaded(torch::nn::Linear(2, 3), AdamOptions(0.5));
  acc::detail::plan_optimizer_load(
      loaded.native, acc::detail::shard_of_optimizer_state(loaded.optimizer, state, "file"), "file")();
  const PtValue regathered = acc::detail::gathered_optimizer_state(loaded.optimizer, true);
  CHECK(average_of(regathered, 0).equal(average_of(state, 0)));

  const auto wider = stepped(4);
  const std::string error =
      acc::test::error_of([&] { acc::detail::shard_of_optimizer_state(wider->optimizer, state, "file"); });
  CHECK(error.find("file: parameter 0 'exp_avg' is [3, 2], the parameter is [3, 4]") != std::string::npos);
}

}  // namespace gathered_optimizer_state_test
