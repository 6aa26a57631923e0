// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/samplers.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"

namespace {

using nlohmann::json;
using Order = std::vector<std::size_t>;

std::unique_ptr<acc::Sampler> sampler_of(const json& one) {
  if (one["kind"] == "random") {
    return std::make_unique<acc::RandomSampler>(
        one["size"], acc::RandomSamplerOptions{.replacement = one["replacement"],
                                               .num_samples = one["num_samples"].get<std::size_t>()});
  }
  if (one["kind"] == "subset") return std::make_unique<acc::SubsetRandomSampler>(one["indices"].get<Order>());
  if (one["kind"] == "weighted") {
    return std::make_unique<acc::WeightedRandomSampler>(one["weights"].get<std::vector<double>>(),
                                                        one["num_samples"], one["replacement"]);
  }
  return std::make_unique<acc::DistributedSampler>(
      one["size"], acc::DistributedSamplerOptions{.shuffle = one["shuffle"], .drop_last = one["drop_last"]});
}

// The orders of all processes.
std::vector<Order> orders(const acc::Sampler& sampler, std::size_t processes, std::uint64_t seed = 0) {
  std::vector<Order> all;
  for (std::size_t i = 0; i < processes; ++i)
    all.push_back(sampler.order({.seed = seed, .process_index = i, .num_processes = processes}));
  return all;
}

}  // namespace

TEST_CASE("samplers: every recorded order of torch's samplers is met", "[runtime]") {
  const json recorded = json::parse(acc::read_file(ACC_TEST_DATA "/runtime/loaders.json"));
  std::map<std::string, int> seen;
  for (const json& one : recorded["samplers"]) {
    INFO(one.dump());
    ++seen[one["kind"]];
    const auto sampler = sampler_of(one);
    if (one.contains("order")) {
      CHECK(sampler->order({.seed = one["seed"]}) == one["order"].get<Order>());
      CHECK_FALSE(sampler->distributed());
    } else {
      const auto expected = one["processes"].get<std::vector<Order>>();
      CHECK(orders(*sampler, expected.size(), one["seed"]) == expected);
      CHECK(sampler->distributed());
    }
  }
  CHECK(seen.size() == 4);
  CHECK(seen["distributed"] > 100);
}

TEST_CASE("samplers: evaluation repeats no sample: 10,000 over three processes are 10,000", "[runtime]") {
  const acc::DistributedEvalSampler sampler(10000, /*shuffle=*/true);
  Order all;
  for (const Order& mine : orders(sampler, 3)) {
    CHECK((mine.size() == 3333 || mine.size() == 3334));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == acc::plain_order(10000));
}

TEST_CASE("samplers: weights that cannot be drawn from are errors", "[runtime]") {
  CHECK_THROWS_AS(acc::WeightedRandomSampler({1, -1}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({0, 0}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({1, 0, 1}, 3, /*replacement=*/false), acc::Error);
  CHECK_THROWS_AS(acc::RandomSampler(0, {.num_samples = 3}), acc::Error);
}
