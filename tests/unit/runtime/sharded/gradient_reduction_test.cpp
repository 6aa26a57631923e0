// SPDX-License-Identifier: Apache-2.0
// Means over several processes are tested by runtime/sharded_training_test.
#include "acc/runtime/sharded/gradient_reduction.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/lone_group.hpp"
#include "support/torch_tensor.hpp"

namespace gradient_reduction_test {

namespace {

using acc::detail::GradientReduction;
using acc::detail::Piece;
using acc::detail::Unit;

Piece piece(const std::string& name, std::int64_t numel, bool trains = true) {
  return {.name = name, .shape = {numel}, .numel = numel, .trains = trains};
}

at::Tensor tensor_of(std::vector<double> values) {
  const auto length = static_cast<std::int64_t>(values.size());
  return acc::test::numbers(values, {length}, at::kFloat);
}

at::Tensor part(const at::Tensor& flat, const Unit& unit, std::size_t index) {
  return flat.narrow(0, unit.pieces()[index].offset, unit.pieces()[index].numel);
}

}  // namespace

TEST_CASE("gradient_reduction: it is complete when all that trains has a gradient; the rest counts as zero",
          "[runtime]") {
  const auto group = acc::test::lone_group();
  const Unit unit("net", true, {piece("a", 2), piece("frozen", 3, false), piece("b", 1)}, {});
  GradientReduction reduction(unit);
  CHECK(reduction.is_empty());
  reduction.add(0, tensor_of({1, 2}), false);
  CHECK_FALSE(reduction.is_complete());
  reduction.add(2, tensor_of({5}), false);
  CHECK(reduction.is_complete());
  CHECK(reduction.pieces() == std::vector<bool>{true, false, true});
  reduction.start(*group, 1);
  CHECK(reduction.is_started());
  CHECK(reduction.is_empty());
  const at::Tensor mean = reduction.finish();
  CHECK(part(mean, unit, 0).equal(tensor_of({1, 2})));
  CHECK(part(mean, unit, 1).equal(tensor_of({0, 0, 0})));
  CHECK(part(mean, unit, 2).equal(tensor_of({5})));
}

TEST_CASE("gradient_reduction: what was kept is averaged with the next gradients", "[runtime]") {
  const auto group = acc::test::lone_group();
  const Unit unit("net", true, {piece("a", 2), piece("b", 1)}, {});
  GradientReduction reduction(unit);
  reduction.add(0, tensor_of({1, 2}), true);
  CHECK_FALSE(reduction.is_empty());
  reduction.add(0, tensor_of({10, 20}), false);
  reduction.add(1, tensor_of({5}), false);
  reduction.start(*group, 1);
  const at::Tensor mean = reduction.finish();
  CHECK(part(mean, unit, 0).equal(tensor_of({11, 22})));
  CHECK(part(mean, unit, 1).equal(tensor_of({5})));
}

TEST_CASE("gradient_reduction: a gradient that was dropped is not averaged, the others are", "[runtime]") {
  const auto group = acc::test::lone_group();
  const Unit unit("net", true, {piece("a", 2), piece("b", 1)}, {});
  GradientReduction reduction(unit);
  for (const bool local : {true, false}) {
    CAPTURE(local);
    reduction.add(0, tensor_of({1, 2}), local);
    reduction.add(1, tensor_of({5}), local);
    reduction.drop(0);
    CHECK(reduction.pieces() == std::vector<bool>{false, true});
    reduction.start(*group, 1);
    const at::Tensor mean = reduction.finish();
    CHECK(part(mean, unit, 0).equal(tensor_of({0, 0})));
    CHECK(part(mean, unit, 1).equal(tensor_of({5})));
    reduction.add(1, tensor_of({5}), local);
    reduction.drop(1);
    CHECK(reduction.is_empty());
  }
}

TEST_CASE("gradient_reduction: gradients that are kept after a part of others came are not left behind",
          "[runtime]") {
  const auto group = acc::test::lone_group();
  const Unit unit("net", true, {piece("a", 2), piece("b", 1)}, {});
  GradientReduction reduction(unit);
  reduction.add(0, tensor_of({1, 2}), false);
  reduction.add(0, tensor_of({10, 20}), true);
  reduction.add(1, tensor_of({5}), true);
  reduction.start(*group, 1);
  CHECK(reduction.is_empty());
  const at::Tensor mean = reduction.finish();
  CHECK(part(mean, unit, 0).equal(tensor_of({11, 22})));
  CHECK(part(mean, unit, 1).equal(tensor_of({5})));
}

}  // namespace gradient_reduction_test
