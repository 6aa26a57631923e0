// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/tensor_batches.hpp"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/imag.h>

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace tensor_batches_test {

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

TEST_CASE("collate: tensors are stacked, numbers become int64 or float64 tensors", "[runtime]") {
  CHECK(acc::collate(std::vector{kOne, kTwo}).equal(numbers({1, 2, 3, 4}, {2, 2}, at::kFloat)));
  CHECK(acc::collate(std::vector{3, 5}).equal(numbers({3, 5}, {2}, at::kLong)));
  CHECK(acc::collate(std::vector{0.5F}).equal(numbers({0.5}, {1}, at::kDouble)));
}

TEST_CASE("collate: truth values become a bool tensor, as a mask must be", "[runtime]") {
  const at::Tensor values = acc::collate(std::vector{true, false});
  CHECK(values.scalar_type() == at::kBool);
  CHECK(values.equal(numbers({1, 0}, {2}, at::kBool)));
  const auto [rows, masks] =
      acc::collate(std::vector<std::pair<at::Tensor, bool>>{{kOne, false}, {kTwo, true}});
  CHECK(masks.equal(numbers({0, 1}, {2}, at::kBool)));
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

TEST_CASE("collate: other samples are returned unchanged", "[runtime]") {
  CHECK(acc::collate(std::vector<std::string>{"a", "b"}) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("tensor_dataset: a batch stacks the requested rows", "[runtime]") {
  const at::Tensor x = acc::test::numbers({0, 1, 10, 11, 20, 21}, {3, 2}, at::kFloat);
  const at::Tensor y = acc::test::numbers({5, 6, 7}, {3}, at::kLong);
  const acc::TensorDataset data(x, y);
  CHECK(data.size() == 3);
  const auto [rows, labels] = data.get_batch(std::vector<std::size_t>{2, 0});
  CHECK(rows.equal(acc::test::numbers({20, 21, 0, 1}, {2, 2}, at::kFloat)));
  CHECK(labels.equal(acc::test::numbers({7, 5}, {2}, at::kLong)));
}

TEST_CASE("tensor_dataset: conjugates and their parts are read as such", "[runtime]") {
  const at::Tensor complex = at::complex(at::ones({3}), at::ones({3}));
  const at::Tensor conjugate = complex.conj();
  CHECK(acc::take_rows(conjugate, {0, 2}).equal(conjugate.slice(0, 0, 2)));
  const at::Tensor negative = at::imag(conjugate).contiguous();
  CHECK(acc::take_rows(negative, {1}).item<float>() == -1);
  CHECK(acc::take_rows(at::_neg_view(at::ones({2})), {1}).item<float>() == -1);
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

}  // namespace tensor_batches_test
