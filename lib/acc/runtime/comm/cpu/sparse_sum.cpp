// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/sparse_sum.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace acc::detail {
namespace {

using Counts = std::vector<std::int64_t>;

Counts gather_counts(std::int64_t count, const GatherFromAll& gather) {
  Counts counts;
  for (const at::Tensor& gathered : gather(at::full({1}, count, at::kLong)))
    counts.push_back(gathered.item<std::int64_t>());
  return counts;
}

// The rows of each rank, of which it has `counts[rank]`.
std::vector<at::Tensor> gather_rows(const at::Tensor& rows, const Counts& counts,
                                    const GatherFromAll& gather) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] = std::ranges::max(counts);
  at::Tensor padded = at::zeros(sizes, rows.options());
  padded.narrow(0, 0, rows.size(0)).copy_(rows);
  std::vector<at::Tensor> gathered = gather(padded);
  for (std::size_t rank = 0; rank < gathered.size(); ++rank)
    gathered[rank] = gathered[rank].narrow(0, 0, counts[rank]);
  return gathered;
}

}  // namespace

void sum_sparse(at::Tensor& tensor, const GatherFromAll& gather) {
  const at::NoGradGuard no_graph;
  const at::Tensor summand = tensor.coalesce();
  const Counts counts = gather_counts(summand._nnz(), gather);
  const auto indices = gather_rows(summand._indices().t(), counts, gather);
  const auto values = gather_rows(summand._values(), counts, gather);
  const auto of_rank = [&](std::size_t rank) {
    return at::sparse_coo_tensor(indices[rank].t().contiguous(), values[rank], tensor.sizes(),
                                 tensor.options(), /*is_coalesced=*/true);
  };
  // Not coalesced as a whole, since LibTorch's sort may change the order of equal indices.
  at::Tensor sum = of_rank(0);
  for (std::size_t rank = 1; rank < counts.size(); ++rank) sum.add_(of_rank(rank));
  tensor.copy_(sum);
}

}  // namespace acc::detail
