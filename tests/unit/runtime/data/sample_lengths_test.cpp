// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample_lengths.hpp"

#include <torch/torch.h>

#include <tuple>

#include "acc/runtime/data/collated.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace sample_lengths_test {

using Lengths = std::vector<std::size_t>;

namespace {

// Sample i has i + 1 words and a label.
struct Sentences {
  std::size_t size() const { return 3; }
  std::tuple<at::Tensor, at::Tensor> get(std::size_t index) const {
    return {torch::ones({std::int64_t(index) + 1}), torch::ones({9})};
  }
};

struct Numbers {
  std::size_t size() const { return 3; }
  at::Tensor get(std::size_t) const { return torch::tensor(1); }
};

struct Listed : Sentences {
  Lengths lengths() const { return {7, 8, 9}; }
};

}  // namespace

TEST_CASE("sample_lengths: they are those of the samples' first tensors, or what the data set says",
          "[runtime]") {
  Sentences sentences;
  CHECK(acc::sample_lengths(sentences) == Lengths{1, 2, 3});
  Listed listed;
  CHECK(acc::sample_lengths(listed) == Lengths{7, 8, 9});
  STATIC_REQUIRE_FALSE(acc::SizedSamples<acc::TensorDataset<2>>);
}

TEST_CASE("sample_lengths: a data set with a collator has the lengths of its samples", "[runtime]") {
  auto data = acc::collated(Sentences(), [](const auto& samples) { return std::get<0>(samples.front()); });
  CHECK(acc::sample_lengths(data) == Lengths{1, 2, 3});
}

TEST_CASE("sample_lengths: a number has none", "[runtime]") {
  Numbers numbers;
  CHECK(acc::test::error_of([&] { acc::sample_lengths(numbers); }) ==
        "data set: a sample has no tensor with a length (give it lengths())");
}

}  // namespace sample_lengths_test
