// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/operator_watch.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "acc/runtime/sharded/unit.hpp"
#include "support/catch.hpp"
#include "support/lone_group.hpp"
#include "support/torch_tensor.hpp"

namespace operator_watch_test {

TEST_CASE("operator_watch: operators that take a unit's parameter, or a view of it, are told to the unit",
          "[runtime]") {
  const auto group = acc::test::lone_group();
  const at::Tensor weight = acc::test::numbers({1, 2}, {2}, at::kFloat);
  acc::detail::Unit unit("net", true, {{.name = "weight", .parameter = weight, .shape = {2}, .numel = 2}},
                         {});
  unit.take_parameters(*group);
  const at::Tensor view = weight.narrow(0, 1, 1);
  int uses = 0;
  unit.on_use = [&](acc::detail::Unit& used, const c10::OperatorHandle&) { uses += &used == &unit ? 1 : 9; };

  acc::detail::watch_operators(true);
  at::Tensor result = at::ones({2}) + 1;
  CHECK(uses == 0);
  result = weight + 1;
  CHECK(uses == 1);
  result = view + 1;
  CHECK(uses == 2);
  {
    const acc::detail::UnwatchedOperators unwatched;
    result = weight + 1;
  }
  CHECK(uses == 2);
  // A conversion reads the values if the type is another one.
  unit.on_use = [&](acc::detail::Unit&, const c10::OperatorHandle& op) {
    if (!acc::detail::returns_views(op)) ++uses;
  };
  result = weight.to(at::kFloat);
  CHECK(uses == 2);
  result = weight.to(at::kDouble);
  CHECK(uses == 3);
  bool is_written = false;
  unit.on_use = [&](acc::detail::Unit& used, const c10::OperatorHandle&) {
    is_written = acc::detail::is_written(used);
  };
  result.copy_(view);
  CHECK_FALSE(is_written);
  view.copy_(result[0]);
  CHECK(is_written);
  // What is about autograd alone is no use.
  unit.on_use = [&](acc::detail::Unit&, const c10::OperatorHandle&) { ++uses; };
  weight.requires_grad_(false);
  CHECK(uses == 3);
  acc::detail::watch_operators(false);
  result = weight + 1;
  CHECK(uses == 3);
}

TEST_CASE("operator_watch: each unit of an operator is told once, and which others it uses", "[runtime]") {
  const auto group = acc::test::lone_group();
  const std::vector<at::Tensor> weights{at::ones({2}), at::ones({2}), at::ones({2})};
  std::vector<std::unique_ptr<acc::detail::Unit>> units;
  for (const at::Tensor& weight : weights) {
    const acc::detail::Piece piece{.name = "weight", .parameter = weight, .shape = {2}, .numel = 2};
    units.push_back(
        std::make_unique<acc::detail::Unit>("net", true, std::vector{piece}, acc::detail::UnitOptions()));
    units.back()->take_parameters(*group);
  }
  std::vector<int> in_use;
  for (const auto& unit : units)
    unit->on_use = [&](acc::detail::Unit&, const c10::OperatorHandle&) {
      in_use.push_back(static_cast<int>(
          std::ranges::count_if(units, [](const auto& one) { return acc::detail::is_in_use(*one); })));
    };
  acc::detail::watch_operators(true);
  at::Tensor result = at::cat({weights[0], weights[2], weights[0]});
  result = weights[1] + 1;
  acc::detail::watch_operators(false);
  CHECK(in_use == std::vector{2, 2, 1});
}

}  // namespace operator_watch_test
