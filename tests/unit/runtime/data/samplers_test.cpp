// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/samplers.hpp"

#include <stdlib.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace samplers_test {

namespace {

using nlohmann::json;
using Order = std::vector<std::size_t>;

acc::SamplerShare share(std::size_t index, std::size_t count) {
  return {.process_index = index, .num_processes = count};
}

std::unique_ptr<acc::Sampler> sampler_of(const json& one) {
  if (one["kind"] == "random") {
    return std::make_unique<acc::RandomSampler>(
        one["size"], acc::RandomSamplerOptions{.replacement = one["replacement"],
                                               .num_samples = one["num_samples"].get<std::size_t>()});
  }
  if (one["kind"] == "subset") return std::make_unique<acc::SubsetRandomSampler>(one["indices"].get<Order>());
  if (one["kind"] == "length_grouped")
    return std::make_unique<acc::LengthGroupedSampler>(one["lengths"].get<Order>(), one["batch_size"]);
  return std::make_unique<acc::WeightedRandomSampler>(one["weights"].get<std::vector<double>>(),
                                                      one["num_samples"], one["replacement"]);
}

// The orders of all processes, one after the other.
std::vector<Order> distributed_orders(const json& one, std::size_t processes) {
  std::vector<Order> all;
  for (std::size_t i = 0; i < processes; ++i) {
    const acc::DistributedSampler sampler(
        one["size"],
        {.shuffle = one["shuffle"], .drop_last = one["drop_last"], .share = share(i, processes)});
    CHECK(sampler.distributed());
    // The pass of a loader that was not prepared has no information about the job.
    all.push_back(sampler.order({.seed = one["seed"]}));
    CHECK(sampler.total_size() == all.back().size() * processes);
  }
  return all;
}

// While it exists, this process is one of several according to the launcher's variables.
class Job {
 public:
  Job(int rank, int world_size) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  }
  ~Job() {
    ::unsetenv("RANK");
    ::unsetenv("WORLD_SIZE");
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
};

}  // namespace

TEST_CASE("samplers: orders equal every recorded order of torch's and transformers' samplers", "[runtime]") {
  const json recorded = json::parse(acc::read_file(ACC_TEST_DATA "/runtime/loaders.json"));
  std::map<std::string, int> counts;
  for (const json& one : recorded["samplers"]) {
    INFO(one.dump());
    ++counts[one["kind"]];
    if (one.contains("order")) {
      const auto sampler = sampler_of(one);
      CHECK(sampler->order({.seed = one["seed"]}) == one["order"].get<Order>());
      CHECK_FALSE(sampler->distributed());
    } else {
      const auto expected = one["processes"].get<std::vector<Order>>();
      CHECK(distributed_orders(one, expected.size()) == expected);
    }
  }
  CHECK(counts.size() == 5);
  CHECK(counts["distributed"] > 100);
}

TEST_CASE("samplers: DistributedEvalSampler repeats no sample: 10,000 over three processes are 10,000",
          "[runtime]") {
  Order all;
  for (std::size_t i = 0; i < 3; ++i) {
    const Order local = acc::DistributedEvalSampler(10000, /*shuffle=*/true, share(i, 3)).order({});
    CHECK((local.size() == 3333 || local.size() == 3334));
    all.insert(all.end(), local.begin(), local.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == acc::detail::plain_order(10000));
}

TEST_CASE("samplers: distributed samplers know their process and the total number of samples", "[runtime]") {
  const Job job(6, 7);
  const acc::DistributedSampler train(10000);
  CHECK(train.process_index() == 6);
  CHECK(train.num_processes() == 7);
  CHECK(train.size() == 10000);
  CHECK(train.total_size() == 10003);
  CHECK(train.order({}).size() == 1429);
  CHECK(acc::DistributedSampler(10000, {.drop_last = true}).total_size() == 9996);
  const acc::DistributedEvalSampler eval(10000);
  CHECK(eval.size() == 10000);
  CHECK(eval.total_size() == 10000);
  CHECK(eval.order({}) == acc::DistributedEvalSampler(10000, false, share(6, 7)).order({}));
  CHECK(acc::test::error_of([] { acc::DistributedEvalSampler(3, false, share(2, 2)); }) ==
        "DistributedSampler: process 2 is not one of 2");
}

TEST_CASE("samplers: weights that cannot be drawn from are errors", "[runtime]") {
  CHECK_THROWS_AS(acc::WeightedRandomSampler({1, -1}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({0, 0}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({}, 1), acc::Error);
  CHECK_THROWS_AS(acc::WeightedRandomSampler({1, 0, 1}, 3, /*replacement=*/false), acc::Error);
  CHECK_THROWS_AS(acc::RandomSampler(0, {.num_samples = 3}), acc::Error);
}

TEST_CASE("samplers: samples cannot be grouped in batches of none", "[runtime]") {
  CHECK(acc::test::error_of([] { acc::LengthGroupedSampler({1, 2}, 0); }) ==
        "LengthGroupedSampler: the batch size is 0");
}

}  // namespace samplers_test
