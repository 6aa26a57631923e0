// SPDX-License-Identifier: Apache-2.0
// Ranks are threads in this test; tests/runtime tests processes.
#include "acc/runtime/data/dispatcher.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <barrier>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace dispatcher_test {

namespace {

using Numbers = std::vector<std::int64_t>;
using Batches = std::vector<Numbers>;

struct Result {
  Batches batches = {};
  Batches lists = {};
  std::size_t remainder = 0;
  std::string error = {};
};

Numbers numbers_of(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.contiguous();
  return {rows.const_data_ptr<std::int64_t>(), rows.const_data_ptr<std::int64_t>() + rows.numel()};
}

Numbers numbers_of(const std::vector<std::vector<std::string>>& lists) {
  Numbers numbers;
  for (const auto& list : lists) {
    for (const std::string& text : list) numbers.push_back(std::stoll(text));
  }
  return numbers;
}

// The results of `count` ranks when rank 0 reads with `read`.
std::vector<Result> dispatch(std::size_t count, bool split, bool drop_last,
                             const acc::detail::Dispatcher::Read& read,
                             const acc::detail::Dispatcher::Read& from_start = {}) {
  std::barrier meet(static_cast<std::ptrdiff_t>(count));
  at::Tensor sent;
  std::vector<Result> results(count);
  const auto run = [&](std::size_t rank) {
    const auto broadcast = [&](at::Tensor& tensor) {
      if (rank == 0) sent = tensor;
      meet.arrive_and_wait();
      if (rank != 0) tensor.copy_(sent);
      meet.arrive_and_wait();
    };
    acc::detail::Dispatcher dispatcher(broadcast, {.index = rank, .count = count, .split_batches = split},
                                       drop_last, read, from_start);
    try {
      while (const auto part = dispatcher.next()) {
        results[rank].batches.push_back(numbers_of(part->tensors.front()));
        results[rank].lists.push_back(numbers_of(part->lists));
        if (dispatcher.at_end()) results[rank].remainder = dispatcher.remainder();
      }
    } catch (const std::exception& error) {
      results[rank].error = error.what();
    }
  };
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < count; ++rank) ranks.emplace_back(run, rank);
  for (std::thread& rank : ranks) rank.join();
  return results;
}

// The numbers 0 to samples - 1 in batches, as tensors and as a list.
acc::detail::Dispatcher::Read rows(std::int64_t samples, std::int64_t batch_size, bool drop_last = false) {
  return [=, next = std::int64_t{0}]() mutable -> std::optional<acc::detail::BatchParts> {
    const std::int64_t end = std::min(samples, next + batch_size);
    if (next == end || (drop_last && end - next < batch_size)) return std::nullopt;
    const at::Tensor batch = at::arange(next, end, at::kLong);
    std::vector<std::string> list;
    while (next < end) list.push_back(std::to_string(next++));
    return acc::detail::BatchParts{
        .tensors = {batch, batch.unsqueeze(1).expand({batch.size(0), 2})}, .lists = {list}, .common = "keys"};
  };
}

}  // namespace

TEST_CASE("dispatcher: batches equal every recorded case of accelerate's dispatch_batches", "[runtime]") {
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/loaders.json"));
  REQUIRE(recorded["dispatched"].size() > 50);
  for (const auto& one : recorded["dispatched"]) {
    INFO(one.dump());
    const std::size_t count = one["processes"].size();
    const auto results = dispatch(count, one["split_batches"], one["drop_last"],
                                  rows(one["samples"], one["batch_size"], one["drop_last"]));
    Numbers metrics;
    for (std::size_t step = 0; step < results[0].batches.size(); ++step) {
      for (const Result& rank : results)
        metrics.insert(metrics.end(), rank.batches[step].begin(), rank.batches[step].end());
    }
    const std::size_t step_size = count * (results[0].batches.empty() ? 0 : results[0].batches.back().size());
    if (results[0].remainder != 0) metrics.resize(metrics.size() - step_size + results[0].remainder);
    CHECK(metrics == one["metrics"].get<Numbers>());
    for (std::size_t rank = 0; rank < count; ++rank) {
      CHECK(results[rank].batches == one["processes"][rank].get<Batches>());
      CHECK(results[rank].lists == results[rank].batches);
    }
  }
}

TEST_CASE("dispatcher: fewer rows than ranks are repeated until each has one", "[runtime]") {
  for (const Result& rank : dispatch(3, false, false, rows(1, 4))) {
    CHECK(rank.batches == Batches{{0}});
    CHECK(rank.remainder == 1);
  }
}

TEST_CASE("dispatcher: after a first batch without rows the next one with some fills the rest", "[runtime]") {
  const auto read = [full = rows(3, 3), begun = false]() mutable {
    if (std::exchange(begun, true)) return full();
    auto batch = rows(1, 1)();
    return std::optional(acc::detail::slice_rows(*batch, 0, 0));
  };
  const auto results = dispatch(2, true, false, read);
  CHECK(results[0].batches == Batches{{}, {0, 1}});
  CHECK(results[1].batches == Batches{{}, {2, 0}});
}

TEST_CASE("dispatcher: a resumed pass ends like a whole one", "[runtime]") {
  const bool split = GENERATE(false, true);
  const auto whole = dispatch(3, split, false, rows(25, 6));
  acc::detail::Dispatcher::Read rest = rows(25, 6);
  for (int batch = 0; batch < (split ? 1 : 3); ++batch) rest();
  const auto resumed = dispatch(3, split, false, rest, rows(25, 6));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(resumed[rank].batches == Batches(whole[rank].batches.begin() + 1, whole[rank].batches.end()));
    CHECK(resumed[rank].lists == resumed[rank].batches);
    CHECK(resumed[rank].remainder == whole[rank].remainder);
  }
}

TEST_CASE("dispatcher: a read error of rank 0 ends all ranks, and none waits", "[runtime]") {
  const auto results = dispatch(
      2, false, false, []() -> std::optional<acc::detail::BatchParts> { throw std::runtime_error("torn"); });
  CHECK(results[0].error == "torn");
  CHECK(results[1].error ==
        "dispatch_batches: rank 0 could not read the next batch; its own error names the cause");
}

TEST_CASE("dispatcher: the steps before a read error are given to all ranks", "[runtime]") {
  const auto results =
      dispatch(2, false, false,
               [read = rows(12, 2), remaining = 4]() mutable -> std::optional<acc::detail::BatchParts> {
                 if (remaining-- == 0) throw std::runtime_error("torn");
                 return read();
               });
  CHECK(results[0].batches == Batches{{0, 1}, {4, 5}});
  CHECK(results[1].batches == Batches{{2, 3}, {6, 7}});
  CHECK(results[0].error == "torn");
  CHECK_FALSE(results[1].error.empty());
}

TEST_CASE("dispatcher: batches that do not fit together are an error on all ranks", "[runtime]") {
  const auto results =
      dispatch(2, false, false, [wide = false]() mutable -> std::optional<acc::detail::BatchParts> {
        wide = !wide;
        return acc::detail::BatchParts{.tensors = {at::zeros({2, wide ? 3 : 2}, at::kLong)}};
      });
  CHECK(results[0].error.starts_with("dispatch_batches: batches of different shapes"));
  CHECK_FALSE(results[1].error.empty());
}

TEST_CASE("dispatcher: a tensor that cannot be sent is an error on all ranks", "[runtime]") {
  const auto results = dispatch(2, false, /*drop_last=*/true, [] {
    return std::optional(
        acc::detail::BatchParts{.tensors = {at::zeros({2}, at::TensorOptions(at::kMeta).dtype(at::kLong))}});
  });
  CHECK(results[0].error.starts_with("dispatch_batches: a tensor of the meta device"));
  CHECK(results[1].error.starts_with("dispatch_batches: rank 0 could not read"));
}

TEST_CASE("dispatcher: a header that rank 0 cannot have written is an error", "[runtime]") {
  // The number of tensors, the rows, and the type, the dimensions and the first size of the first tensor.
  for (const Numbers& header : std::vector<Numbers>{{0, 4, 4, 1, 4},
                                                    {34, 4, 4, 1, 4},
                                                    {-3, 4, 4, 1, 4},
                                                    {1, -1, 4, 1, 4},
                                                    {1, 4, 99, 1, 4},
                                                    {1, 4, 4, 17, 4},
                                                    {1, 4, 4, 1, -4},
                                                    {2, 4, 4, 1, 4, 5}}) {
    const auto broadcast = [&](at::Tensor& tensor) {
      std::ranges::copy(header, tensor.mutable_data_ptr<std::int64_t>());
    };
    acc::detail::Dispatcher dispatcher(broadcast, {.index = 1, .count = 2}, false, {}, {});
    CHECK(acc::test::error_of([&] {
            dispatcher.next();
          }).starts_with("dispatch_batches: what another rank sent is something else"));
  }
}

TEST_CASE("dispatcher: a batch with uneven rows is an error, even if the next one evens them out",
          "[runtime]") {
  const auto results =
      dispatch(2, false, false, [first = false]() mutable -> std::optional<acc::detail::BatchParts> {
        first = !first;
        return acc::detail::BatchParts{.tensors = {at::zeros({first ? 2 : 1}, at::kLong)},
                                       .lists = {std::vector<std::string>(first ? 1 : 2)}};
      });
  CHECK(results[0].error.find("the same number of rows") != std::string::npos);
  CHECK_FALSE(results[1].error.empty());
}

}  // namespace dispatcher_test
