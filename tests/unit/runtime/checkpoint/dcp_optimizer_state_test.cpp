// SPDX-License-Identifier: Apache-2.0
// That other numbers of processes and Python load it is tested by runtime/sharded_state_test.py and
// parity/sharded.
#include "acc/runtime/checkpoint/dcp_optimizer_state.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace dcp_optimizer_state_test {

namespace {

using acc::detail::ShardedParameters;
using acc::test::error_of;
using acc::test::TemporaryFolder;

// `a` of [2, 2], and the end of `b` of [5].
ShardedParameters parameters() {
  return {.ranges = {{{"a", {2, 2}, 0, 4}}, {{"b", {5}, 2, 3}}}, .names = {{"a", "b"}}};
}

torch::optim::SGD stepped() {
  at::Tensor a = at::zeros({4}).set_requires_grad(true);
  at::Tensor b = at::zeros({3}).set_requires_grad(true);
  torch::optim::SGD optimizer({a, b}, torch::optim::SGDOptions(0.5).momentum(0.9));
  a.mutable_grad() = at::arange(4, at::kFloat);
  b.mutable_grad() = at::arange(6, 9, at::kFloat);
  optimizer.step();
  return optimizer;
}

}  // namespace

TEST_CASE("sharded optimizer state: ranges are named by Python's names", "[runtime]") {
  const acc::ShardedState state = acc::detail::dcp_optimizer_state(stepped(), parameters());
  REQUIRE(state.ranges.size() == 2);
  CHECK(state.ranges[1].path == std::vector<std::string>{"optimizer", "state", "b", "momentum_buffer"});
  CHECK(state.ranges[1].begin == 2);
  CHECK(state.ranges[1].elements.equal(at::arange(6, 9, at::kFloat)));
  const acc::PtValue objects(state.objects);
  const auto& groups = *objects.find("optimizer")->find("param_groups")->get_if<acc::PtList>();
  CHECK(*(*groups[0].find("params")->get_if<acc::PtList>())[1].get_if<std::string>() == "b");
}

TEST_CASE("sharded optimizer state: the state of other parameters is an error", "[runtime]") {
  const TemporaryFolder folder;
  const auto folder_of_state = folder.path() / "optimizer_0";
  const torch::optim::SGD optimizer = stepped();
  acc::ShardedState state = acc::detail::dcp_optimizer_state(optimizer, parameters());
  // What the other process has.
  state.ranges.push_back(
      {.path = {"optimizer", "state", "b", "momentum_buffer"}, .shape = {5}, .elements = at::zeros({2})});
  acc::save_sharded(folder_of_state, state, {});
  const auto error = [&](const ShardedParameters& sharded) {
    return error_of([&] { acc::detail::read_dcp_optimizer_state(folder_of_state, optimizer, sharded); });
  };
  CHECK(error(parameters()) == "no error");
  CHECK(error({.ranges = parameters().ranges, .names = {{"a"}}}) ==
        folder_of_state.string() + ": parameter group 0 has 'b', which the optimizer's has not");
  CHECK(error({.ranges = parameters().ranges, .names = {{"a", "b", "c"}}}) ==
        folder_of_state.string() + ": parameter group 0 lacks 'c', which the optimizer has");
  CHECK(error({.ranges = parameters().ranges, .names = {{"a", "b"}, {}}}) ==
        folder_of_state.string() + ": has 1 parameter groups, the optimizer 2");
}

}  // namespace dcp_optimizer_state_test
