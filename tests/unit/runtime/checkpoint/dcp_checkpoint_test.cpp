// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <filesystem>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace dcp_checkpoint_test {

namespace {

namespace fs = std::filesystem;
using acc::TensorRange;
using acc::test::error_of;
using acc::test::TemporaryFolder;

at::Tensor numbers() {
  return at::arange(24, at::kFloat).view({2, 3, 4});
}

TensorRange part(std::int64_t begin, std::int64_t count) {
  return {.path = {"model", "cube"},
          .shape = {2, 3, 4},
          .begin = begin,
          .elements = numbers().flatten().narrow(0, begin, count)};
}

// A tensor in two ranges, others whole, and objects.
acc::ShardedState sample() {
  return {.ranges = {part(7, 17), part(0, 7), acc::whole_range({"model", "step"}, at::full({}, 3, at::kLong)),
                     acc::whole_range({"model", "half"}, at::full({2}, 1.5, at::kBFloat16)),
                     acc::whole_range({"model", "empty"}, at::zeros({0, 2}))},
          .objects = {
              {"optimizer",
               acc::PtDict{{"param_groups", acc::PtList{acc::PtDict{{"lr", 0.5},
                                                                    {"betas", acc::PtTuple{{0.9, 0.99}}},
                                                                    {"fused", {}},
                                                                    {"params", acc::PtList{"cube", "half"}}},
                                                        acc::PtDict{{"lr", 0.25}}}}}}}};
}

at::Tensor loaded(const fs::path& folder, std::int64_t begin, std::int64_t count) {
  TensorRange range = part(begin, count);
  range.elements = at::zeros({count});
  acc::load_sharded(folder, {range});
  return range.elements;
}

}  // namespace

TEST_CASE("sharded checkpoint: any range of a tensor is loaded, whatever ranges were saved", "[runtime]") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder.path() / "two words";
  acc::save_sharded(checkpoint, sample(), {});
  for (std::int64_t begin = 0; begin < 24; ++begin) {
    for (std::int64_t count = 1; begin + count <= 24; ++count)
      CHECK(loaded(checkpoint, begin, count).equal(numbers().flatten().narrow(0, begin, count)));
  }
  TensorRange step = acc::whole_range({"model", "step"}, at::zeros({}, at::kLong));
  TensorRange half = acc::whole_range({"model", "half"}, at::zeros({2}));
  const TensorRange empty = acc::whole_range({"model", "empty"}, at::zeros({0, 2}));
  acc::load_sharded(checkpoint, {step, half, empty});
  CHECK(step.elements.item<std::int64_t>() == 3);
  CHECK(half.elements.equal(at::full({2}, 1.5)));  // of another type
}

TEST_CASE("sharded checkpoint: objects come back in their dicts and lists", "[runtime]") {
  const TemporaryFolder folder;
  acc::save_sharded(folder.path() / "c", sample(), {});
  const acc::PtValue objects(acc::read_sharded_objects(folder.path() / "c"));
  const auto& groups = *objects.find("optimizer")->find("param_groups")->get_if<acc::PtList>();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].find("lr")->number() == 0.5);
  CHECK(groups[0].find("betas")->get_if<acc::PtTuple>()->items[1].number() == 0.99);
  CHECK(groups[0].find("fused")->is_none());
  CHECK(groups[0].find("params")->get_if<acc::PtList>()->size() == 2);
  CHECK(groups[1].find("lr")->number() == 0.25);
}

TEST_CASE("sharded checkpoint: ranges that leave a gap or overlap are not saved", "[runtime]") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder.path() / "c";
  acc::save_sharded(checkpoint, sample(), {});
  const auto error = [&](std::vector<TensorRange> ranges) {
    return error_of([&] { acc::save_sharded(checkpoint, {.ranges = std::move(ranges)}, {}); });
  };
  CHECK(error({part(0, 7), part(8, 16)}) ==
        "tensor 'model.cube': the ranges of all processes do not cover it once");
  CHECK(error({part(0, 12), part(8, 16)}) ==
        "tensor 'model.cube': the ranges of all processes do not cover it once");
  CHECK(error({part(0, 12), acc::whole_range({"model", "cube"}, at::zeros({3}))}) ==
        "tensor 'model.cube': has different shapes or types in its ranges");
  CHECK(loaded(checkpoint, 0, 24).equal(numbers().flatten()));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("sharded checkpoint: a name that is not UTF-8 is not saved", "[runtime]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] {
          acc::save_sharded(folder.path() / "c", {.ranges = {acc::whole_range({"gr\xfc"}, at::zeros({1}))}},
                            {});
        }).starts_with("tensor 'gr\\xfc': the name is not UTF-8"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("sharded checkpoint: two values of one name are not saved", "[runtime]") {
  const TemporaryFolder folder;
  const acc::PtDict nested = {{"b", 1}};
  const acc::PtDict tensor = {{"b", at::zeros({2})}};
  const std::vector<acc::ShardedState> states = {
      {.objects = {{"a", nested}, {"a.b", 2}}},
      {.objects = {{"a", tensor}, {"a.b", 2}}},
      {.objects = {{"a", tensor}, {"a.b", at::zeros({2})}}},
      {.ranges = {acc::whole_range({"a", "b"}, at::zeros({2}))}, .objects = {{"a.b", 2}}},
      {.objects = {{"a", 1}, {"a", 2}}}};
  for (const acc::ShardedState& state : states) {
    const std::string error = error_of([&] { acc::save_sharded(folder.path() / "c", state, {}); });
    CHECK(error.find("is the name of two values, of which a checkpoint can hold one") != std::string::npos);
  }
  CHECK(error_of([&] { acc::save_sharded(folder.path() / "c", states[0], {}); }).starts_with("'a.b': "));
  CHECK(error_of([&] {
          acc::save_sharded(folder.path() / "c", {.objects = {{"a", acc::PtDict{{"\xfc", 1}}}}}, {});
        }) == "'a': has a key that is not UTF-8: '\\xfc'");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("sharded checkpoint: all that does not fit is named before anything changes", "[runtime]") {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder.path() / "c";
  acc::save_sharded(checkpoint, sample(), {});
  const at::Tensor half = at::zeros({2});
  const std::string error = error_of([&] {
    acc::load_sharded(checkpoint, {acc::whole_range({"model", "half"}, half),
                                   acc::whole_range({"model", "cube"}, at::zeros({24})),
                                   acc::whole_range({"model", "none"}, at::zeros({1}))});
  });
  CHECK(error == checkpoint.string() + ": tensor 'model.cube' is [2, 3, 4], not [24]\n" +
                     checkpoint.string() + ": has no tensor 'model.none'");
  CHECK(half.equal(at::zeros({2})));
}

TEST_CASE("sharded checkpoint: a range outside of its tensor is an error", "[runtime]") {
  const TemporaryFolder folder;
  TensorRange range = part(20, 4);
  range.begin = 21;
  CHECK(error_of([&] { acc::save_sharded(folder.path() / "c", {.ranges = {range}}, {}); }) ==
        "tensor 'model.cube': a range ends at element 25 of 24");
}

}  // namespace dcp_checkpoint_test
