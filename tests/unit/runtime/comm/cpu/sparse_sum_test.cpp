// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/sparse_sum.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <barrier>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace sparse_sum_test {

namespace {

// Sums the ranks' tensors, each on a thread of its own. What each said, such as "no error".
std::vector<std::string> sum(std::vector<at::Tensor>& tensors) {
  const std::size_t size = tensors.size();
  std::barrier all(static_cast<std::ptrdiff_t>(size));
  std::vector<at::Tensor> inputs(size);
  std::vector<std::string> said(size);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const auto gather = [&, rank](const at::Tensor& contribution) {
      inputs[rank] = contribution;
      all.arrive_and_wait();
      std::vector<at::Tensor> gathered;
      for (const at::Tensor& one : inputs) gathered.push_back(one.clone());
      all.arrive_and_wait();
      return gathered;
    };
    ranks.emplace_back([&, rank, gather] {
      said[rank] = acc::test::error_of([&] { acc::detail::sum_sparse(tensors[rank], gather); });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return said;
}

std::vector<at::Tensor> sums_of(std::vector<at::Tensor> tensors) {
  for (const std::string& said : sum(tensors)) CHECK(said == "no error");
  return tensors;
}

at::Tensor rows(const std::vector<std::int64_t>& indices, double value, at::ScalarType type = at::kFloat) {
  const auto count = static_cast<std::int64_t>(indices.size());
  return at::sparse_coo_tensor(at::tensor(indices, at::kLong).view({1, count}),
                               at::full({count, 2}, value, at::TensorOptions(type)), {5, 2});
}

}  // namespace

TEST_CASE("sparse_sum: each rank has the sum of all, coalesced, in the type that they have") {
  const auto type =
      GENERATE(at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kInt, at::kChar, at::kComplexDouble);
  for (const at::Tensor& sum :
       sums_of({rows({3, 1, 3}, 1, type), rows({4}, 10, type), rows({1, 4, 0}, 100, type)})) {
    CHECK(sum.is_coalesced());
    CHECK(sum.scalar_type() == type);
    const at::Tensor column = sum.to_dense().select(1, 0);
    CHECK(column.equal(at::tensor({100, 101, 0, 2, 110}, at::kLong).to(type)));
    CHECK(sum._nnz() == 4);
  }
}

TEST_CASE("sparse_sum: ranks may have no values, also all of them") {
  for (const at::Tensor& sum : sums_of({rows({}, 1), rows({2}, 5), rows({}, 1)}))
    CHECK(sum.to_dense().select(1, 1).equal(at::tensor({0, 0, 5, 0, 0}, at::kFloat)));
  for (const at::Tensor& sum : sums_of({rows({}, 1), rows({}, 1)})) {
    CHECK(sum._nnz() == 0);
    CHECK(sum.to_dense().equal(at::zeros({5, 2})));
  }
}

TEST_CASE("sparse_sum: elements of a matrix, as rows of a table, are added in the order of ranks") {
  const auto element = [](float value) {
    return at::sparse_coo_tensor(at::tensor({1, 2}, at::kLong).view({2, 1}), at::full({1}, value), {3, 4});
  };
  const float sum = (1e8F + 1.0F) + -1e8F;  // another order would give 1
  for (const at::Tensor& result : sums_of({element(1e8F), element(1.0F), element(-1e8F)}))
    CHECK(result.to_dense()[1][2].item<float>() == sum);
}

TEST_CASE("sparse_sum: tensors of different shapes, types or sparse dimensions are refused on all ranks") {
  const auto of_shape = [](const std::vector<std::int64_t>& shape, std::int64_t sparse_dimensions) {
    return at::ones(shape).to_sparse(sparse_dimensions);
  };
  const auto [other, text] = GENERATE_COPY(
      std::pair(of_shape({6, 2}, 1), std::string("Float [6, 2] with 1 sparse dimension")),
      std::pair(of_shape({5, 2}, 2), std::string("Float [5, 2] with 2 sparse dimensions")),
      std::pair(of_shape({5, 2, 1}, 1), std::string("Float [5, 2, 1] with 1 sparse dimension")),
      std::pair(rows({}, 1, at::kDouble), std::string("Double [5, 2] with 1 sparse dimension")));
  std::vector<at::Tensor> tensors{rows({1}, 1), rows({2, 3}, 1), other};
  for (const std::string& said : sum(tensors)) {
    CHECK(said ==
          "all_reduce: every process must give a sparse tensor of the same shape and type, but rank 0 gives "
          "Float [5, 2] with 1 sparse dimension and rank 2 gives " +
              text);
  }
}

TEST_CASE("sparse_sum: numbers that are no sparse tensor's are an error") {
  for (const std::int64_t number : {-1, 99}) {
    const auto gather = [&](const at::Tensor& contribution) {
      return std::vector{contribution, at::full_like(contribution, number)};
    };
    at::Tensor tensor = rows({1}, 1);
    CHECK(acc::test::error_of([&] {
            acc::detail::sum_sparse(tensor, gather);
          }).starts_with("all_reduce: what another rank sent is something else than what is expected here"));
  }
}

}  // namespace sparse_sum_test
