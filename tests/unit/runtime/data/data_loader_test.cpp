// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/data_loader.hpp"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

#include "acc/base/error.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace data_loader_test {

namespace {

using Pass = std::vector<std::vector<std::size_t>>;

// Returns the requested indices as the batch.
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

TEST_CASE("data_loader: a pass returns each sample in batches", "[runtime]") {
  Loader loader(Echo{5}, {.batch_size = 2});
  CHECK(loader.size() == 3);
  CHECK(read(loader) == Pass{{0, 1}, {2, 3}, {4}});
  CHECK(read(loader).size() == 3);
}

TEST_CASE("data_loader: drop_last drops a short last batch", "[runtime]") {
  Loader loader(Echo{5}, {.batch_size = 2, .drop_last = true});
  CHECK(read(loader) == Pass{{0, 1}, {2, 3}});
}

TEST_CASE("data_loader: an empty data set has no batches", "[runtime]") {
  Loader loader(Echo{0}, {.batch_size = 2});
  CHECK(read(loader).empty());
}

TEST_CASE("data_loader: pass e is shuffled with seed + e, and set_epoch repeats it", "[runtime]") {
  Loader loader(Echo{20}, {.batch_size = 20, .shuffle = true, .seed = 5});
  const Pass first = read(loader);
  const Pass second = read(loader);
  CHECK(first == Pass{acc::detail::shuffled_order(20, 5)});
  CHECK(second == Pass{acc::detail::shuffled_order(20, 6)});
  loader.set_epoch(0);
  CHECK(read(loader) == first);
}

TEST_CASE("data_loader: the last batch of a pass is known while the loop uses it", "[runtime]") {
  const auto active = std::make_shared<acc::detail::ActiveLoaders>();
  Loader loader(Echo{5}, {.batch_size = 2});
  loader.plan().set_shard({.index = 0, .count = 2});
  loader.set_context({.active = active});
  std::vector<bool> at_end;
  for ([[maybe_unused]] const auto& batch : loader) {
    at_end.push_back(active->innermost()->at_end);
    CHECK(active->innermost()->remainder == 1);
  }
  CHECK(at_end == std::vector<bool>{false, true});
  CHECK(active->innermost() == nullptr);
}

TEST_CASE("data_loader: a loop that has ended is no longer active", "[runtime]") {
  const auto active = std::make_shared<acc::detail::ActiveLoaders>();
  Loader outer(Echo{4}, {.batch_size = 2});
  Loader inner(Echo{4}, {.batch_size = 4});
  outer.set_context({.active = active});
  inner.set_context({.active = active});
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

TEST_CASE("data_loader: a batch size of 0 is an error", "[runtime]") {
  CHECK_THROWS_AS(Loader(Echo{4}, {.batch_size = 0}), acc::Error);
}

TEST_CASE("data_loader: workers keep the order", "[runtime]") {
  const std::size_t workers = GENERATE(0, 1, 2, 5);
  Loader loader(Echo{101}, {.batch_size = 7, .shuffle = true, .seed = 1, .num_workers = workers});
  Loader plain(Echo{101}, {.batch_size = 7, .shuffle = true, .seed = 1});
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(read(loader) == read(plain));
}

namespace {

// Sample 5 cannot be read.
struct Broken {
  std::size_t size() const { return 12; }
  int get(std::size_t index) const {
    if (index == 5) throw std::runtime_error("cannot be read");
    return static_cast<int>(index);
  }
};

// Checks that each copy is read by one thread only.
struct OneThread {
  std::size_t size() const { return 64; }
  std::vector<std::size_t> get_batch(c10::ArrayRef<std::size_t> indices) {
    if (owner == std::thread::id()) owner = std::this_thread::get_id();
    if (owner != std::this_thread::get_id()) throw std::runtime_error("read by two threads");
    return indices.vec();
  }
  std::thread::id owner = {};
};

struct Unmovable : OneThread {
  Unmovable() = default;
  Unmovable(Unmovable&&) = default;
};

// Waits in sample 0 until sample 1 is requested.
struct Meeting {
  std::size_t size() const { return 2; }
  int get(std::size_t index) const {
    meet->arrive_and_wait();
    return static_cast<int>(index);
  }
  std::shared_ptr<std::latch> meet = std::make_shared<std::latch>(2);
};

struct Countdown {
  void reset() { remaining = 5; }
  std::optional<int> next() { return remaining == 0 ? std::nullopt : std::optional(remaining--); }
  int remaining = 0;
};

}  // namespace

TEST_CASE("data_loader: a worker's exception is thrown in the loop with its text and the sample",
          "[runtime]") {
  const std::size_t workers = GENERATE(0, 1, 3);
  acc::DataLoader loader(Broken(), {.batch_size = 4, .num_workers = workers});
  std::size_t batches = 0;
  const auto loop = [&] {
    for ([[maybe_unused]] const at::Tensor& batch : loader) ++batches;
  };
  CHECK_THROWS_WITH(loop(), "sample 5: cannot be read");
  CHECK(batches == 1);
}

TEST_CASE("data_loader: where the first batch of a resumed pass cannot be read, the next try reads it",
          "[runtime]") {
  struct Flaky {
    std::size_t size() const { return 4; }
    std::vector<std::size_t> get_batch(c10::ArrayRef<std::size_t> indices) {
      if (broken-- > 0) throw std::runtime_error("torn");
      return indices.vec();
    }
    // Also when the batch is read again to find the sample at fault.
    int broken = 2;
  };
  acc::DataLoader loader(Flaky(), {.batch_size = 2});
  loader.load_state(R"({"batches":1,"dataset_size":4,"epoch":5,"finished":false,"seed":0,"step_size":2})");
  const std::string state = loader.state();
  CHECK_THROWS(loader.begin());
  CHECK(loader.state() == state);
  CHECK(loader.epoch() == 5);
  CHECK(*loader.begin() == std::vector<std::size_t>{2, 3});
}

TEST_CASE("data_loader: threads share a const data set and copy another", "[runtime]") {
  acc::DataLoader shared(Meeting(), {.num_workers = 2});
  std::size_t batches = 0;
  for ([[maybe_unused]] const at::Tensor& batch : shared) ++batches;
  CHECK(batches == 2);
  acc::DataLoader copied(OneThread(), {.num_workers = 4});
  batches = 0;
  for ([[maybe_unused]] const auto& batch : copied) ++batches;
  CHECK(batches == 64);
  acc::DataLoader neither(Unmovable(), {.num_workers = 2});
  CHECK_THROWS_AS(neither.begin(), acc::Error);
}

TEST_CASE("data_loader: several iterators may exist at once, each with its own pass", "[runtime]") {
  Loader loader(Echo{6}, {.batch_size = 2, .shuffle = true, .seed = 4, .num_workers = 2});
  auto first = loader.begin();
  auto second = loader.begin();
  ++first;
  CHECK(*second == acc::detail::make_batches(acc::detail::shuffled_order(6, 5), {.batch_size = 2})[0]);
  CHECK(*first == acc::detail::make_batches(acc::detail::shuffled_order(6, 4), {.batch_size = 2})[1]);
}

TEST_CASE("data_loader: destroying an iterator ends its threads, and it may outlive its loader",
          "[runtime]") {
  std::optional<Loader::Iterator> pass;
  {
    Loader loader(Echo{600}, {.batch_size = 2, .num_workers = 4});
    pass.emplace(loader.begin());
  }
  ++*pass;
  CHECK(**pass == std::vector<std::size_t>{2, 3});
  pass.reset();
}

TEST_CASE("data_loader: a restored loader continues with the remaining batches", "[runtime]") {
  const std::size_t workers = GENERATE(0, 3);
  const acc::DataLoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 8, .num_workers = workers};
  Loader whole(Echo{40}, options);
  read(whole);
  const Pass second = read(whole);
  const Pass third = read(whole);

  Loader interrupted(Echo{40}, options);
  read(interrupted);
  std::string state;
  std::size_t batches = 0;
  for ([[maybe_unused]] const auto& batch : interrupted) {
    if (++batches == 4) break;
  }
  state = interrupted.state();
  Loader restored(Echo{40}, options);
  restored.load_state(state);
  CHECK(restored.epoch() == 1);
  CHECK(read(restored) == Pass(second.begin() + 4, second.end()));
  CHECK(read(restored) == third);
}

TEST_CASE("data_loader: skip_first_batches skips batches of the new loader only", "[runtime]") {
  Loader loader(Echo{7}, {.batch_size = 2});
  Loader rest = acc::skip_first_batches(loader, 3);
  CHECK(rest.size() == 1);
  CHECK(read(rest) == Pass{{6}});
  CHECK(loader.epoch() == 1);
  CHECK(read(loader).size() == 4);
  CHECK(acc::skip_first_batches(loader, 9).size() == 0);
  Loader more = acc::skip_first_batches(acc::skip_first_batches(loader, 1), 1);
  CHECK(read(more) == Pass{{4, 5}, {6}});
}

TEST_CASE("data_loader: an iterable data set is read to its end, with or without a thread", "[runtime]") {
  const std::size_t workers = GENERATE(0, 2);
  acc::DataLoader loader(Countdown(), {.batch_size = 2, .num_workers = workers});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> all;
    for (const at::Tensor& batch : loader) {
      for (std::int64_t i = 0; i < batch.size(0); ++i) all.push_back(batch[i].item<int>());
    }
    CHECK(all == std::vector<int>{5, 4, 3, 2, 1});
  }
  CHECK_THROWS_AS(loader.size(), acc::Error);
  auto first = loader.begin();
  auto second = loader.begin();
  ++first;
  CHECK((*second)[0].item<int>() == 5);
  CHECK((*first)[0].item<int>() == 3);
}

TEST_CASE("data_loader: tensors come as batches of rows", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2, 3}, {3}, at::kFloat);
  acc::DataLoader loader(acc::TensorDataset(x, x.mul(2)), {.batch_size = 2, .num_workers = 1});
  std::vector<at::Tensor> doubled;
  for (auto& [rows, twice] : loader) doubled.push_back(twice.sub(rows));
  CHECK(doubled.at(0).equal(x.slice(0, 0, 2)));
  CHECK(doubled.at(1).equal(x.slice(0, 2)));
}

}  // namespace data_loader_test
