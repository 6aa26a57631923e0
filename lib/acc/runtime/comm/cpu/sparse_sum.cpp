// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/sparse_sum.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/comm/tensor_form.hpp"

namespace acc::detail {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr const char* kWhere = "all_reduce";

// What a rank tells of its summand: the number of values, that of the sparse dimensions, and the form.
constexpr std::int64_t kForm = 2;
constexpr std::int64_t kSummandSize = kForm + kFormSize;

struct Summand {
  std::int64_t count = 0;
  std::int64_t sparse_dimensions = 0;
  std::string form = {};

  bool fits(const Summand& other) const {
    return sparse_dimensions == other.sparse_dimensions && form == other.form;
  }
  std::string text() const {
    return fmt::format("{} with {}", form,
                       pluralize(static_cast<std::uint64_t>(sparse_dimensions), "sparse dimension"));
  }
};

at::Tensor summand_numbers(const at::Tensor& summand) {
  if (summand.dim() > kMaxDimensions) {
    throw Error(
        {.what = fmt::format("a sparse tensor with more than {} dimensions cannot be sent", kMaxDimensions),
         .where = kWhere});
  }
  at::Tensor numbers = at::zeros({kSummandSize}, at::kLong);
  auto* const values = numbers.mutable_data_ptr<std::int64_t>();
  values[0] = summand._nnz();
  values[1] = summand.sparse_dim();
  write_form(summand, values + kForm);
  return numbers;
}

// The number of values of each rank. Throws where summands differ in what would mix up their bytes.
Counts gather_counts(const at::Tensor& summand, const GatherFromAll& gather) {
  std::vector<Summand> summands;
  for (const at::Tensor& gathered : gather(summand_numbers(summand))) {
    const auto* const numbers = gathered.const_data_ptr<std::int64_t>();
    require_form(numbers + kForm, kWhere);
    if (numbers[0] < 0) refuse_numbers(kWhere);
    summands.push_back(
        {.count = numbers[0], .sparse_dimensions = numbers[1], .form = form_text(numbers + kForm)});
  }
  Counts counts;
  for (std::size_t rank = 0; rank < summands.size(); ++rank) {
    if (!summands[rank].fits(summands[0])) {
      throw Error({.what = fmt::format("every process must give a sparse tensor of the same shape and type, "
                                       "but rank 0 gives {} and rank {} gives {}",
                                       summands[0].text(), rank, summands[rank].text()),
                   .where = kWhere});
    }
    counts.push_back(summands[rank].count);
  }
  return counts;
}

// The rows of each rank, of which it has `counts[rank]`. Sent as bytes, since Gloo does not have all types.
std::vector<at::Tensor> gather_rows(const at::Tensor& rows, const Counts& counts,
                                    const GatherFromAll& gather) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] = std::ranges::max(counts);
  at::Tensor padded = at::zeros(sizes, rows.options());
  padded.narrow(0, 0, rows.size(0)).copy_(rows);
  std::vector<at::Tensor> gathered = gather(padded.flatten().view(at::kByte));
  for (std::size_t rank = 0; rank < gathered.size(); ++rank)
    gathered[rank] = gathered[rank].view(rows.scalar_type()).view(sizes).narrow(0, 0, counts[rank]);
  return gathered;
}

}  // namespace

void sum_sparse(at::Tensor& tensor, const GatherFromAll& gather) {
  const at::NoGradGuard no_graph;
  const at::Tensor summand = tensor.coalesce();
  const Counts counts = gather_counts(summand, gather);
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
