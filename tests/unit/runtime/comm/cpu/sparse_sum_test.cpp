// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/sparse_sum.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace sparse_sum_test {

namespace {

// The sums that ranks get, each on a thread of its own.
std::vector<at::Tensor> sums_of(std::vector<at::Tensor> tensors) {
  const std::size_t size = tensors.size();
  std::barrier all(static_cast<std::ptrdiff_t>(size));
  std::vector<at::Tensor> given(size);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      acc::detail::sum_sparse(tensors[rank], [&, rank](const at::Tensor& contribution) {
        given[rank] = contribution;
        all.arrive_and_wait();
        std::vector<at::Tensor> gathered = given;
        all.arrive_and_wait();
        return gathered;
      });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return tensors;
}

at::Tensor rows(const std::vector<std::int64_t>& indices, double value, at::ScalarType type = at::kFloat) {
  const auto count = static_cast<std::int64_t>(indices.size());
  return at::sparse_coo_tensor(at::tensor(indices, at::kLong).view({1, count}),
                               at::full({count, 2}, value, at::TensorOptions(type)), {5, 2});
}

}  // namespace

TEST_CASE("sparse_sum: each rank has the sum of all, coalesced, in the type that they have") {
  const auto type = GENERATE(at::kFloat, at::kDouble, at::kBFloat16, at::kLong);
  for (const at::Tensor& sum :
       sums_of({rows({3, 1, 3}, 1, type), rows({4}, 10, type), rows({1, 4, 0, 1}, 100, type)})) {
    CHECK(sum.is_coalesced());
    CHECK(sum.scalar_type() == type);
    const at::Tensor column = sum.to_dense().select(1, 0).to(at::kLong);
    CHECK(column.equal(at::tensor({100, 201, 0, 2, 110}, at::kLong)));
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

}  // namespace sparse_sum_test
