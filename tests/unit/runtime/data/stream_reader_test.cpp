// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/stream_reader.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"

namespace stream_reader_test {

namespace {

using Batches = std::vector<std::vector<std::string>>;

// The texts "0", "1", ...: samples that are not stacked.
struct Texts {
  int size = 0;
  int broken = -1;
  int next_ = 0;

  void reset() { next_ = 0; }
  std::optional<std::string> next() {
    if (next_ == broken) throw std::runtime_error("torn");
    if (next_ == size) return std::nullopt;
    return std::to_string(next_++);
  }
};

// The same texts in blocks, as LibTorch's stateful data sets return them.
struct TextBlocks {
  int size = 0;
  int next_ = 0;

  void reset() { next_ = 0; }
  std::optional<std::vector<std::string>> get_batch(std::size_t max_samples) {
    if (next_ == size) return std::nullopt;
    std::vector<std::string> block;
    while (next_ < size && block.size() < max_samples) block.push_back(std::to_string(next_++));
    return block;
  }
};

template <class Dataset>
Batches read(Dataset dataset, const acc::BatchRule& rule, const acc::Shard& shard, std::size_t skip = 0) {
  acc::detail::StreamReader<Dataset> reader(std::make_shared<Dataset>(dataset), {.skip = skip},
                                            acc::detail::block_rule(rule, shard));
  Batches batches;
  bool last = false;
  while (auto item = reader(0, 0)) {
    CHECK_FALSE(last);
    last = item->last;
    batches.push_back(item->batch);
  }
  CHECK(last == !batches.empty());
  return batches;
}

Batches texts(const nlohmann::json& recorded) {
  Batches batches;
  for (const auto& batch : recorded) {
    batches.emplace_back();
    for (const int number : batch) batches.back().push_back(std::to_string(number));
  }
  return batches;
}

}  // namespace

TEST_CASE("stream_reader: batches equal every recorded case of accelerate's IterableDatasetShard",
          "[runtime]") {
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/loaders.json"));
  REQUIRE(recorded["streams"].size() > 100);
  for (const auto& one : recorded["streams"]) {
    INFO(one.dump());
    const acc::BatchRule rule{.batch_size = one["batch_size"], .drop_last = one["drop_last"]};
    for (std::size_t index = 0; index < one["processes"].size(); ++index) {
      const acc::Shard shard{
          .index = index, .count = one["processes"].size(), .split_batches = one["split_batches"]};
      const Batches expected = texts(one["processes"][index]);
      CHECK(read(Texts{one["samples"]}, rule, shard) == expected);
      CHECK(read(TextBlocks{one["samples"]}, rule, shard) == expected);
    }
  }
}

TEST_CASE("stream_reader: a single process gets a short last batch", "[runtime]") {
  CHECK(read(Texts{5}, {.batch_size = 2}, {}) == Batches{{"0", "1"}, {"2", "3"}, {"4"}});
  CHECK(read(Texts{5}, {.batch_size = 2, .drop_last = true}, {}) == Batches{{"0", "1"}, {"2", "3"}});
  CHECK(read(Texts{0}, {.batch_size = 2}, {}).empty());
}

TEST_CASE("stream_reader: skipped batches are read and dropped", "[runtime]") {
  CHECK(read(Texts{7}, {.batch_size = 2}, {.index = 1, .count = 2}, 1) == Batches{{"6", "0"}});
  CHECK(read(Texts{3}, {.batch_size = 2}, {}, 9).empty());
}

TEST_CASE("stream_reader: an exception is thrown after the batches before it and names the sample",
          "[runtime]") {
  acc::detail::StreamReader<Texts> reader(std::make_shared<Texts>(Texts{9, 5}), {},
                                          {.block_size = 2, .slice_end = 2});
  CHECK(reader(0, 0)->batch == std::vector<std::string>{"0", "1"});
  CHECK_FALSE(reader(1, 0)->last);
  CHECK_THROWS_WITH(reader(2, 0), "sample 5: torn");
}

TEST_CASE("stream_reader: more samples than were asked for are an error", "[runtime]") {
  struct Generous {
    void reset() {}
    std::optional<std::vector<std::string>> get_batch(std::size_t /*max_samples*/) {
      return std::vector<std::string>(3, "sample");
    }
  };
  acc::detail::StreamReader<Generous> reader(std::make_shared<Generous>(), {},
                                             {.block_size = 2, .slice_end = 2});
  CHECK_THROWS_WITH(reader(0, 0), "sample 0, get_batch: returned 3 samples, but at most 2 were asked for");
}

TEST_CASE("stream_reader: a pass begins with the data set that the loader was given", "[runtime]") {
  struct Growing : Texts {
    void set_epoch(std::uint64_t epoch) { size += static_cast<int>(epoch); }
  };
  const auto growing = std::make_shared<Growing>();
  for (const std::uint64_t epoch : {1U, 2U}) {
    acc::detail::StreamReader<Growing> reader(growing, {.epoch = epoch}, {.block_size = 9, .slice_end = 9});
    CHECK(reader(0, 0)->batch.size() == epoch);
  }
}

TEST_CASE("stream_reader: the remainder of a filled last batch is reported", "[runtime]") {
  acc::detail::StreamReader<Texts> reader(std::make_shared<Texts>(Texts{5}), {},
                                          acc::detail::block_rule({.batch_size = 2}, {.count = 2}));
  CHECK(reader(0, 0)->remainder == 0);
  CHECK(reader(1, 0)->remainder == 1);
}

TEST_CASE("stream_reader: a batch size that cannot be split is an error", "[runtime]") {
  CHECK_THROWS_AS(acc::detail::block_rule({.batch_size = 3}, {.count = 2, .split_batches = true}),
                  acc::Error);
}

}  // namespace stream_reader_test
