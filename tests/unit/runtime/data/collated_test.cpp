// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/collated.hpp"

#include <torch/nn/utils/rnn.h>

#include <array>
#include <mutex>
#include <set>
#include <thread>

#include "acc/base/error.hpp"
#include "acc/runtime/data/data_loader.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace collated_test {

namespace {

using Row = std::vector<std::int64_t>;

// Sentences of 1, 2, 3 ... words.
struct Sentences {
  std::size_t sentences = 0;

  std::size_t size() const { return sentences; }
  Row get(std::size_t index) const {
    if (index == 7) throw std::runtime_error("sentence 7 cannot be read");
    return Row(index + 1, static_cast<std::int64_t>(index));
  }
};

struct Counting {
  std::size_t size() const { return 4; }
  int get(std::size_t index) { return static_cast<int>(index) + 100 * calls++; }
  int calls = 0;
};

std::array<at::Tensor, 2> padded(const std::vector<Row>& rows) {
  std::vector<at::Tensor> words;
  Row lengths;
  for (const Row& row : rows) {
    words.push_back(at::tensor(row));
    lengths.push_back(static_cast<std::int64_t>(row.size()));
  }
  return {torch::nn::utils::rnn::pad_sequence(words, true, -1), at::tensor(lengths)};
}

}  // namespace

TEST_CASE("collated: the collator makes the batches of a loader", "[runtime]") {
  acc::DataLoader loader(acc::collated(Sentences{3}, padded), {.batch_size = 2});
  CHECK(loader.size() == 2);
  std::vector<std::array<at::Tensor, 2>> batches;
  for (auto& batch : loader) batches.push_back(batch);
  REQUIRE(batches.size() == 2);
  CHECK(batches[0][0].equal(at::tensor({0, -1, 1, 1}, at::kLong).view({2, 2})));
  CHECK(batches[0][1].equal(at::tensor({1, 2}, at::kLong)));
  CHECK(batches[1][0].equal(at::tensor({2, 2, 2}, at::kLong).view({1, 3})));
}

TEST_CASE("collated: workers share a const data set and keep the order", "[runtime]") {
  acc::DataLoader loader(acc::collated(Sentences{7}, padded), {.batch_size = 1, .num_workers = 3});
  std::int64_t expected = 0;
  for (auto& [words, lengths] : loader) CHECK(lengths.item<std::int64_t>() == ++expected);
  CHECK(expected == 7);
}

TEST_CASE("collated: a data set and a collator may change when called", "[runtime]") {
  const auto join = [sum = 0](const std::vector<int>& samples) mutable {
    for (const int sample : samples) sum += sample;
    return sum;
  };
  acc::DataLoader loader(acc::collated(Counting{}, join), {.batch_size = 2});
  std::vector<int> sums;
  for (const int sum : loader) sums.push_back(sum);
  CHECK(sums == std::vector<int>{0 + 101, 0 + 101 + 202 + 303});
}

TEST_CASE("collated: an error names the sample", "[runtime]") {
  acc::DataLoader loader(acc::collated(Sentences{9}, padded), {.batch_size = 4});
  const auto read_all = [&] {
    for (auto& batch : loader) CHECK(batch[0].defined());
  };
  CHECK_THROWS_WITH(read_all(), "sample 7: sentence 7 cannot be read");
}

}  // namespace collated_test
