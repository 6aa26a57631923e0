// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/loader_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace loader_plan_test {

namespace {

using Batches = std::vector<acc::BatchIndices>;

acc::LoaderPlan plan_of(std::size_t samples, const acc::DataLoaderOptions& options, acc::Shard shard = {}) {
  acc::LoaderPlan plan(samples, options);
  plan.set_shard(shard);
  return plan;
}

std::string failure_of(const acc::DataLoaderOptions& options,
                       std::optional<std::size_t> size = std::size_t{4}) {
  try {
    acc::LoaderPlan(size, options);
  } catch (const acc::Error& error) {
    return error.what();
  }
  return "none";
}

// Batches of one, two and three samples.
struct ThreeBatches : acc::BatchSampler {
  Batches batches(const acc::SamplerPass& /*pass*/) const override { return {{0}, {1, 2}, {3, 4, 5}}; }
};

// Two batches of different sizes.
struct TwoBatches : acc::BatchSampler {
  Batches batches(const acc::SamplerPass& pass) const override { return {{pass.seed, 1}, {2, 3, 4}}; }
};

}  // namespace

TEST_CASE("loader_plan: the remainder is the number of new samples in the last step of all processes",
          "[runtime]") {
  const acc::DataLoaderOptions options{.batch_size = 64};
  CHECK(plan_of(1000, options, {.count = 4}).begin_pass().remainder == 1000 % 256);
  CHECK(plan_of(1000, options, {.count = 4, .split_batches = true}).begin_pass().remainder == 1000 % 64);
  CHECK(plan_of(1000, options, {.count = 4, .even_batches = false}).begin_pass().remainder == 0);
  CHECK(plan_of(1000, options).begin_pass().remainder == 0);
}

TEST_CASE("loader_plan: a sampler's number of samples counts, not the data set's", "[runtime]") {
  const acc::DataLoaderOptions options{
      .batch_size = 2,
      .sampler = std::make_shared<acc::WeightedRandomSampler>(std::vector<double>{1, 1, 1}, 9)};
  acc::LoaderPlan plan = plan_of(3, options, {.count = 2});
  CHECK(plan.size() == 3);
  CHECK(plan.begin_pass().remainder == 1);
}

TEST_CASE("loader_plan: a distributed sampler's part is not divided again", "[runtime]") {
  const acc::SamplerShare share{.process_index = 1, .num_processes = 2};
  const acc::DataLoaderOptions options{
      .batch_size = 2, .sampler = std::make_shared<acc::DistributedEvalSampler>(7, /*shuffle=*/false, share)};
  // A loader that was not prepared also reads only the part of this process.
  const bool prepared = GENERATE(true, false);
  acc::LoaderPlan plan = prepared ? plan_of(7, options, {.index = 1, .count = 2}) : plan_of(7, options);
  CHECK(plan.state() == plan_of(7, options, {.index = 1, .count = 2}).state());
  const acc::LoaderPass pass = plan.begin_pass();
  CHECK(pass.batches == Batches{{1, 3}, {5}});
  CHECK(pass.remainder == 0);
  CHECK_THROWS_AS(plan.set_dispatched(true), acc::Error);
}

TEST_CASE("loader_plan: differently seeded processes use the same order of a distributed sampler",
          "[runtime]") {
  const auto batches = [](std::uint64_t seed, std::size_t index) {
    acc::set_seed(seed);
    const acc::SamplerShare share{.process_index = index, .num_processes = 2};
    return plan_of(6, {.batch_size = 3,
                       .sampler = std::make_shared<acc::DistributedSampler>(
                           6, acc::DistributedSamplerOptions{.share = share})})
        .begin_pass()
        .batches.at(0);
  };
  acc::BatchIndices all = batches(1, 0);
  for (const std::size_t sample : batches(2, 1)) all.push_back(sample);
  std::ranges::sort(all);
  CHECK(all == acc::detail::plain_order(6));
}

TEST_CASE("loader_plan: the batches of a batch sampler are distributed whole", "[runtime]") {
  const acc::DataLoaderOptions options{.seed = 3, .batch_sampler = std::make_shared<TwoBatches>()};
  CHECK(plan_of(9, options, {.index = 0, .count = 2}).begin_pass().batches == Batches{{3, 1}});
  CHECK(plan_of(9, options, {.index = 1, .count = 2}).begin_pass().batches == Batches{{2, 3, 4}});
}

TEST_CASE("loader_plan: repeated batches of a batch sampler are not part of the remainder", "[runtime]") {
  const acc::DataLoaderOptions options{.batch_sampler = std::make_shared<ThreeBatches>()};
  CHECK(plan_of(6, options, {.count = 2}).begin_pass().remainder == 3);
  CHECK(plan_of(6, options, {.count = 4}).begin_pass().remainder == 6);
  CHECK(plan_of(6, options, {.count = 3}).begin_pass().remainder == 0);
  CHECK(plan_of(6, options, {.count = 2, .even_batches = false}).begin_pass().remainder == 0);
}

TEST_CASE("loader_plan: options that exclude each other are errors", "[runtime]") {
  const auto sampler = std::make_shared<acc::SequentialSampler>(4);
  const auto batches = std::make_shared<TwoBatches>();
  CHECK(failure_of({.batch_size = 0}) == "batch_size: must be at least 1");
  CHECK(failure_of({.shuffle = true, .sampler = sampler}) == "sampler: excludes shuffle");
  CHECK(failure_of({.sampler = sampler, .batch_sampler = batches}) == "batch_sampler: excludes sampler");
  CHECK(failure_of({.batch_size = 2, .batch_sampler = batches}) ==
        "batch_sampler: excludes batch_size, shuffle and drop_last");
  CHECK(failure_of({.num_workers = 2, .prefetch_factor = 0}) == "prefetch_factor: must be at least 1");
  CHECK(failure_of({.shuffle = true}, std::nullopt) ==
        "sampler: an iterable data set has its own order: it takes no sampler and no shuffle");
}

TEST_CASE("loader_plan: a restored state continues in the middle of its epoch", "[runtime]") {
  const acc::DataLoaderOptions options{.batch_size = 2, .shuffle = true, .seed = 5};
  acc::LoaderPlan plan = plan_of(20, options);
  plan.begin_pass();
  const acc::LoaderPass pass = plan.begin_pass();
  plan.set_num_yielded(pass, 3);

  acc::LoaderPlan restored = plan_of(20, {.batch_size = 2, .shuffle = true, .seed = 77});
  restored.load_state(plan.state());
  CHECK(restored.epoch() == 1);
  CHECK(restored.state() == plan.state());
  const acc::LoaderPass rest = restored.begin_pass();
  CHECK(rest.batches == pass.batches);
  CHECK(rest.skip == 3);
  CHECK(rest.seed == pass.seed);
  CHECK(restored.begin_pass().skip == 0);
}

TEST_CASE("loader_plan: after the end of a pass the state is the start of the next", "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  const acc::LoaderPass pass = plan.begin_pass();
  plan.set_num_yielded(pass, 10);
  plan.set_finished(pass);
  acc::LoaderPlan restored = plan_of(20, {.batch_size = 2});
  restored.load_state(plan.state());
  CHECK(restored.epoch() == 1);
  CHECK(restored.begin_pass().skip == 0);
}

TEST_CASE("loader_plan: after the last batch of a pass nothing is left of it, on any number of processes",
          "[runtime]") {
  acc::LoaderPlan plan = plan_of(17, {.batch_size = 2});
  const acc::LoaderPass pass = plan.begin_pass();
  plan.set_num_yielded(pass, 9, /*last=*/true);
  acc::LoaderPlan restored = plan_of(17, {.batch_size = 2}, {.count = 2});
  restored.load_state(plan.state());
  CHECK(restored.epoch() == 0);
  const acc::LoaderPass rest = restored.begin_pass();
  CHECK(rest.resumed);
  CHECK(rest.finished);
  restored.leave_pass();
  CHECK(restored.epoch() == 1);
  CHECK_FALSE(restored.begin_pass().finished);
}

TEST_CASE("loader_plan: a loop may leave out the rest of its pass", "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  plan.set_num_yielded(plan.begin_pass(), 3);
  plan.leave_pass();
  CHECK(nlohmann::json::parse(plan.state())["batches"] == 3);
  plan.skip_rest();
  acc::LoaderPlan restored = plan_of(20, {.batch_size = 2});
  restored.load_state(plan.state());
  CHECK(restored.next().finished);
  plan.leave_pass();
  CHECK(nlohmann::json::parse(plan.state())["epoch"] == 1);
}

TEST_CASE("loader_plan: the state is that of the latest of several passes", "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  const acc::LoaderPass first = plan.begin_pass();
  const acc::LoaderPass second = plan.begin_pass();
  plan.set_num_yielded(second, 2);
  const std::string state = plan.state();
  plan.set_num_yielded(first, 9);
  CHECK(plan.state() == state);
  plan.set_epoch(6);
  CHECK(nlohmann::json::parse(plan.state())["epoch"] == 6);
}

TEST_CASE("loader_plan: the state of four processes continues on two without losing samples", "[runtime]") {
  acc::LoaderPlan four = plan_of(1000, {.batch_size = 8}, {.count = 4});
  four.set_num_yielded(four.begin_pass(), 5);
  acc::LoaderPlan two = plan_of(1000, {.batch_size = 8}, {.count = 2});
  two.load_state(four.state());
  CHECK(two.begin_pass().skip == 10);
  acc::LoaderPlan three = plan_of(1000, {.batch_size = 8}, {.count = 3});
  three.load_state(four.state());
  CHECK(three.begin_pass().skip == 6);  // 6 * 24 of the 160 samples that were read
}

TEST_CASE("loader_plan: the state of another data set is an error and changes nothing", "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  const std::string before = plan.state();
  acc::LoaderPlan other = plan_of(21, {.batch_size = 2});
  other.set_num_yielded(other.begin_pass(), 1);
  CHECK_THROWS_AS(plan.load_state("{"), acc::Error);
  CHECK_THROWS_AS(plan.load_state(R"({"epoch": "one"})"), acc::Error);
  CHECK_THROWS_WITH(plan.load_state(other.state()),
                    "data loader state: belongs to a data set of 21 samples, but this one has 20");
  CHECK(plan.state() == before);
}

TEST_CASE("loader_plan: a state with other numbers than counts is an error and changes nothing",
          "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  const std::string before = plan.state();
  for (const char* name : {"epoch", "seed", "batches", "step_size", "dataset_size"}) {
    for (const char* value : {"-1", "1.5", "-3.5", "true", "null", "\"1\""}) {
      INFO(name << " " << value);
      auto state = nlohmann::json::parse(before);
      state[name] = nlohmann::json::parse(value);
      CHECK(acc::test::error_of([&] { plan.load_state(state.dump()); }) ==
            std::string("data loader state: is not the state of a data loader: its ") + name + " is " +
                value + ", not a number of 0, 1, 2, ...");
    }
  }
  auto state = nlohmann::json::parse(before);
  state["finished"] = 1;
  CHECK_THROWS_AS(plan.load_state(state.dump()), acc::Error);
  state = nlohmann::json::parse(before);
  state["batches"] = state["step_size"] = std::uint64_t{1} << 33U;
  CHECK_THROWS_AS(plan.load_state(state.dump()), acc::Error);
  CHECK(plan.state() == before);
}

TEST_CASE("loader_plan: a pass that could not be read from is begun again, where it was resumed",
          "[runtime]") {
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  const acc::LoaderPass outer = plan.begin_pass();
  plan.set_num_yielded(outer, 3);
  acc::LoaderPlan restored = plan_of(20, {.batch_size = 2});
  restored.load_state(plan.state());
  for (int tries = 0; tries < 2; ++tries) {
    const acc::LoaderPass pass = restored.begin_pass();
    CHECK(pass.epoch == 0);
    CHECK(pass.skip == 3);
    CHECK(pass.resumed);
    restored.cancel_pass(pass.number);
    CHECK(restored.state() == plan.state());
  }
  // A pass in a pass: the outer one goes on.
  plan.cancel_pass(plan.begin_pass().number);
  plan.set_num_yielded(outer, 4);
  CHECK(nlohmann::json::parse(plan.state())["batches"] == 4);
  CHECK(plan.epoch() == 1);
  plan.begin_pass();
  plan.cancel_pass(outer.number);
  CHECK(plan.epoch() == 2);
}

TEST_CASE("loader_plan: between two passes another data set may follow", "[runtime]") {
  acc::LoaderPlan other = plan_of(21, {.batch_size = 2, .seed = 4});
  other.set_epoch(3);
  acc::LoaderPlan plan = plan_of(20, {.batch_size = 2});
  plan.load_state(other.state());
  CHECK(plan.epoch() == 3);
  CHECK(plan.seed() == 4);
}

TEST_CASE("loader_plan: when rank 0 reads for all, batches are not distributed by index", "[runtime]") {
  acc::LoaderPlan plan = plan_of(10, {.batch_size = 2}, {.index = 1, .count = 2});
  plan.set_dispatched(true);
  CHECK(plan.begin_pass().batches.size() == 5);
  CHECK(plan.size() == 3);
}

}  // namespace loader_plan_test
