// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_plan.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"

namespace batch_plan_test {

namespace {

using Batches = std::vector<acc::BatchIndices>;

Batches shard(std::size_t samples, const acc::BatchRule& rule, const acc::Shard& part) {
  return acc::detail::shard_batches(acc::detail::make_batches(acc::detail::plain_order(samples), rule), rule,
                                    part);
}

}  // namespace

TEST_CASE("batch_plan: a short last batch is filled from the start of the data", "[runtime]") {
  const acc::BatchRule rule{.batch_size = 4};
  CHECK(shard(10, rule, {.index = 0, .count = 2}) == Batches{{0, 1, 2, 3}, {8, 9, 0, 1}});
  CHECK(shard(10, rule, {.index = 1, .count = 2}) == Batches{{4, 5, 6, 7}, {2, 3, 4, 5}});
}

TEST_CASE("batch_plan: fewer samples than a batch are repeated for every process", "[runtime]") {
  const acc::BatchRule rule{.batch_size = 4};
  CHECK(shard(3, rule, {.index = 0, .count = 2}) == Batches{{0, 1, 2, 0}});
  CHECK(shard(3, rule, {.index = 1, .count = 2}) == Batches{{1, 2, 0, 1}});
}

TEST_CASE("batch_plan: split batches give each process its part of every batch", "[runtime]") {
  const acc::BatchRule rule{.batch_size = 4};
  CHECK(shard(10, rule, {.index = 0, .count = 2, .split_batches = true}) == Batches{{0, 1}, {4, 5}, {8, 9}});
  CHECK(shard(10, rule, {.index = 1, .count = 2, .split_batches = true}) == Batches{{2, 3}, {6, 7}, {0, 1}});
}

TEST_CASE("batch_plan: a batch size that cannot be split is an error that names both numbers", "[runtime]") {
  try {
    shard(9, {.batch_size = 3}, {.index = 0, .count = 2, .split_batches = true});
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == "batch_size");
    CHECK(error.problems().front().what == "3 cannot be split among 2 processes");
  }
}

TEST_CASE("batch_plan: batches equal every recorded case of accelerate's BatchSamplerShard", "[runtime]") {
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/batch_shards.json"));
  REQUIRE(recorded["cases"].size() > 500);
  for (const auto& one : recorded["cases"]) {
    const acc::BatchRule rule{.batch_size = one["batch_size"], .drop_last = one["drop_last"]};
    for (std::size_t index = 0; index < one["processes"].size(); ++index) {
      const acc::Shard part{.index = index,
                            .count = one["processes"].size(),
                            .even_batches = one["even_batches"],
                            .split_batches = one["split_batches"]};
      INFO(one.dump() << " process " << index);
      CHECK(shard(one["samples"], rule, part) == one["processes"][index].get<Batches>());
    }
  }
}

TEST_CASE("batch_plan: batches of any size equal every recorded case", "[runtime]") {
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/loaders.json"));
  for (const auto& one : recorded["unsized_batches"]) {
    Batches batches;
    std::size_t next = 0;
    for (const std::size_t size : one["sizes"]) {
      batches.emplace_back();
      while (batches.back().size() < size) batches.back().push_back(next++);
    }
    for (std::size_t index = 0; index < one["processes"].size(); ++index) {
      const acc::Shard part{
          .index = index, .count = one["processes"].size(), .even_batches = one["even_batches"]};
      INFO(one.dump() << " process " << index);
      CHECK(acc::detail::shard_batches(batches, {.batch_size = 0}, part) ==
            one["processes"][index].get<Batches>());
    }
  }
  CHECK_THROWS_AS(acc::detail::shard_batches({{1}}, {.batch_size = 0}, {.count = 2, .split_batches = true}),
                  acc::Error);
}

TEST_CASE("batch_plan: a shuffled order is torch.randperm of the seed", "[runtime]") {
  // torch.randperm(10, generator=torch.Generator().manual_seed(42)).
  CHECK(acc::detail::shuffled_order(10, 42) == std::vector<std::size_t>{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(acc::detail::shuffled_order(7, 0) == std::vector<std::size_t>{4, 0, 5, 3, 2, 6, 1});
}

}  // namespace batch_plan_test
