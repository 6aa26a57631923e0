// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/data_loader.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

using Pass = std::vector<std::vector<std::size_t>>;

// Gives back the indices that it was asked for.
struct Echo {
  std::size_t samples = 0;

  std::size_t size() const { return samples; }
  std::vector<std::size_t> get_batch(c10::ArrayRef<std::size_t> indices) { return indices.vec(); }
};

using Loader = acc::DataLoader<Echo>;

Pass read(Loader& loader) {
  Pass pass;
  for (const auto& batch : loader) pass.push_back(batch);
  return pass;
}

}  // namespace

TEST_CASE("data_loader: a pass gives each sample in batches", "[runtime]") {
  Loader loader(Echo{5}, {.batch_size = 2});
  CHECK(loader.size() == 3);
  CHECK(read(loader) == Pass{{0, 1}, {2, 3}, {4}});
  CHECK(read(loader).size() == 3);
}

TEST_CASE("data_loader: drop_last leaves a short batch out", "[runtime]") {
  Loader loader(Echo{5}, {.batch_size = 2, .drop_last = true});
  CHECK(read(loader) == Pass{{0, 1}, {2, 3}});
}

TEST_CASE("data_loader: no data gives no batch", "[runtime]") {
  Loader loader(Echo{0}, {.batch_size = 2});
  CHECK(read(loader).empty());
}

TEST_CASE("data_loader: pass e is shuffled with seed + e, and set_epoch repeats it", "[runtime]") {
  Loader loader(Echo{20}, {.batch_size = 20, .shuffle = true, .seed = 5});
  const Pass first = read(loader);
  const Pass second = read(loader);
  CHECK(first == Pass{acc::shuffled_order(20, 5)});
  CHECK(second == Pass{acc::shuffled_order(20, 6)});
  loader.set_epoch(0);
  CHECK(read(loader) == first);
}

TEST_CASE("data_loader: the last batch of a pass is known while it is read", "[runtime]") {
  const auto active = std::make_shared<acc::ActiveLoaders>();
  Loader loader(Echo{5}, {.batch_size = 2});
  loader.plan().set_shard({.index = 0, .count = 2});
  loader.set_active_loaders(active);
  std::vector<bool> at_end;
  for ([[maybe_unused]] const auto& batch : loader) {
    at_end.push_back(active->innermost()->at_end);
    CHECK(active->innermost()->remainder == 1);
  }
  CHECK(at_end == std::vector<bool>{false, true});
  CHECK(active->innermost() == nullptr);
}

TEST_CASE("data_loader: a loop that is left no longer counts as read", "[runtime]") {
  const auto active = std::make_shared<acc::ActiveLoaders>();
  Loader outer(Echo{4}, {.batch_size = 2});
  Loader inner(Echo{4}, {.batch_size = 4});
  outer.set_active_loaders(active);
  inner.set_active_loaders(active);
  for ([[maybe_unused]] const auto& batch : outer) {
    for ([[maybe_unused]] const auto& other : inner) {
      CHECK(active->innermost()->at_end);
      break;
    }
    CHECK_FALSE(active->innermost()->at_end);
    break;
  }
  CHECK(active->innermost() == nullptr);
}

TEST_CASE("data_loader: the remainder is what the processes together have too many of", "[runtime]") {
  acc::LoaderPlan plan(1000, {.batch_size = 64});
  plan.set_shard({.index = 0, .count = 4});
  CHECK(plan.remainder() == 1000 % 256);
  plan.set_shard({.index = 0, .count = 4, .split_batches = true});
  CHECK(plan.remainder() == 1000 % 64);
  plan.set_shard({.index = 0, .count = 4, .even_batches = false});
  CHECK(plan.remainder() == 0);
}

TEST_CASE("data_loader: a batch size of 0 is an error", "[runtime]") {
  CHECK_THROWS_AS(Loader(Echo{4}, {.batch_size = 0}), acc::Error);
}
