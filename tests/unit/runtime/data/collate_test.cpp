// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/collate.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

using acc::test::numbers;

const at::Tensor kOne = numbers({1, 2}, {2}, at::kFloat);
const at::Tensor kTwo = numbers({3, 4}, {2}, at::kFloat);

struct Example {
  Example(at::Tensor data_, at::Tensor target_) : data(std::move(data_)), target(std::move(target_)) {}
  at::Tensor data;
  at::Tensor target;
};

}  // namespace

TEST_CASE("collate: tensors are stacked, numbers become tensors of their kind", "[runtime]") {
  CHECK(acc::collate(std::vector{kOne, kTwo}).equal(numbers({1, 2, 3, 4}, {2, 2}, at::kFloat)));
  CHECK(acc::collate(std::vector{3, 5}).equal(numbers({3, 5}, {2}, at::kLong)));
  CHECK(acc::collate(std::vector{0.5F}).equal(numbers({0.5}, {1}, at::kDouble)));
}

TEST_CASE("collate: tuples become an array with a tensor for each part", "[runtime]") {
  const auto [images, labels] = acc::collate(std::vector<std::pair<at::Tensor, int>>{{kOne, 7}, {kTwo, 8}});
  CHECK(images.size(0) == 2);
  CHECK(labels.equal(numbers({7, 8}, {2}, at::kLong)));
}

TEST_CASE("collate: examples are stacked in both parts", "[runtime]") {
  const Example batch = acc::collate(std::vector{Example(kOne, kTwo), Example(kTwo, kOne)});
  CHECK(batch.data[1].equal(kTwo));
  CHECK(batch.target[1].equal(kOne));
}

TEST_CASE("collate: other samples stay as they are", "[runtime]") {
  CHECK(acc::collate(std::vector<std::string>{"a", "b"}) == std::vector<std::string>{"a", "b"});
}
