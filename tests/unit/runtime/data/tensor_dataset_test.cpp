// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/tensor_dataset.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

TEST_CASE("tensor_dataset: a batch stacks the rows that it is asked for", "[runtime]") {
  const at::Tensor x = acc::test::numbers({0, 1, 10, 11, 20, 21}, {3, 2}, at::kFloat);
  const at::Tensor y = acc::test::numbers({5, 6, 7}, {3}, at::kLong);
  const acc::TensorDataset data(x, y);
  CHECK(data.size() == 3);
  const auto [rows, labels] = data.get_batch(std::vector<std::size_t>{2, 0});
  CHECK(rows.equal(acc::test::numbers({20, 21, 0, 1}, {2, 2}, at::kFloat)));
  CHECK(labels.equal(acc::test::numbers({7, 5}, {2}, at::kLong)));
}

TEST_CASE("tensor_dataset: rows may be empty", "[runtime]") {
  const acc::TensorDataset data(acc::test::numbers({}, {3, 0}, at::kFloat));
  const auto [rows] = data.get_batch(std::vector<std::size_t>{2, 0});
  CHECK(rows.sizes() == c10::IntArrayRef({2, 0}));
}

TEST_CASE("tensor_dataset: tensors of different length are an error", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2}, {2}, at::kFloat);
  CHECK_THROWS_AS(acc::TensorDataset(x, acc::test::numbers({1}, {1}, at::kFloat)), acc::Error);
  CHECK_THROWS_AS(acc::TensorDataset(acc::test::numbers({1}, {}, at::kFloat)), acc::Error);
}
