// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_plan.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

// Fills the last batches of a pass with the first samples of the pass.
class Refill {
 public:
  Refill(const std::vector<BatchIndices>& batches, std::size_t rounds) {
    for (std::size_t i = 0; i < std::min(rounds, batches.size()); ++i) {
      samples_.insert(samples_.end(), batches[i].begin(), batches[i].end());
    }
  }

  void fill(BatchIndices& batch, std::size_t size) {
    while (batch.size() < size) batch.push_back(samples_[next_++ % samples_.size()]);
  }

 private:
  BatchIndices samples_ = {};
  std::size_t next_ = 0;
};

std::vector<BatchIndices> distribute_batches(std::vector<BatchIndices> batches, const BatchRule& rule,
                                             const Shard& shard) {
  const bool last_is_full = rule.batch_size == 0 || batches.back().size() == rule.batch_size;
  const std::size_t full_rounds = (batches.size() - (last_is_full ? 0 : 1)) / shard.count;
  if (rule.drop_last) {
    batches.resize(full_rounds * shard.count);
  } else if (shard.even_batches && rule.batch_size == 0) {
    const std::size_t first = std::min(batches.size(), shard.count);
    for (std::size_t i = 0; batches.size() % shard.count != 0; ++i)
      batches.push_back(BatchIndices(batches[i % first]));
  } else if (shard.even_batches) {
    Refill refill(batches, shard.count);
    refill.fill(batches.back(), rule.batch_size);
    while (batches.size() % shard.count != 0) refill.fill(batches.emplace_back(), rule.batch_size);
  }
  std::vector<BatchIndices> mine;
  for (std::size_t i = shard.index; i < batches.size(); i += shard.count)
    mine.push_back(std::move(batches[i]));
  return mine;
}

std::vector<BatchIndices> split_each_batch(std::vector<BatchIndices> batches, const BatchRule& rule,
                                           const Shard& shard) {
  if (rule.batch_size == 0) {
    throw Error({.what = "batches of any size cannot be split among processes", .where = "split_batches"});
  }
  if (rule.batch_size % shard.count != 0) {
    throw Error({.what = fmt::format("{} cannot be split among {} processes", rule.batch_size, shard.count),
                 .where = "batch_size",
                 .hint = "split_batches needs a multiple of the number of processes"});
  }
  const std::size_t part = rule.batch_size / shard.count;
  if (batches.back().size() < rule.batch_size) {
    if (rule.drop_last) {
      batches.pop_back();
    } else if (shard.even_batches) {
      Refill(batches, 1).fill(batches.back(), rule.batch_size);
    }
  }
  std::vector<BatchIndices> mine;
  for (const BatchIndices& batch : batches) {
    const std::size_t begin = std::min(batch.size(), part * shard.index);
    const std::size_t end = std::min(batch.size(), part * (shard.index + 1));
    if (begin < end)
      mine.emplace_back(batch.begin() + static_cast<std::ptrdiff_t>(begin),
                        batch.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return mine;
}

}  // namespace

std::vector<BatchIndices> make_batches(const std::vector<std::size_t>& order, const BatchRule& rule) {
  std::vector<BatchIndices> batches;
  for (std::size_t begin = 0; begin < order.size(); begin += rule.batch_size) {
    const std::size_t size = std::min(rule.batch_size, order.size() - begin);
    if (size < rule.batch_size && rule.drop_last) break;
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    batches.emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
  }
  return batches;
}

std::vector<BatchIndices> shard_batches(const std::vector<BatchIndices>& batches, const BatchRule& rule,
                                        const Shard& shard) {
  if (shard.count == 1 || batches.empty()) return batches;
  return shard.split_batches ? split_each_batch(batches, rule, shard)
                             : distribute_batches(batches, rule, shard);
}

std::vector<std::size_t> plain_order(std::size_t size) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed) {
  const at::Tensor order = at::randperm(static_cast<std::int64_t>(size), at::detail::createCPUGenerator(seed),
                                        at::TensorOptions(at::kLong));
  const auto* first = order.const_data_ptr<std::int64_t>();
  return {first, first + size};
}

BlockRule block_rule(const BatchRule& rule, const Shard& shard) {
  if (shard.split_batches && rule.batch_size % shard.count != 0) {
    throw Error({.what = fmt::format("{} cannot be split among {} processes", rule.batch_size, shard.count),
                 .where = "batch_size",
                 .hint = "split_batches needs a multiple of the number of processes"});
  }
  const std::size_t part = shard.split_batches ? rule.batch_size / shard.count : rule.batch_size;
  return {.block_size = part * shard.count,
          .slice_begin = part * shard.index,
          .slice_end = part * (shard.index + 1),
          .fill = shard.count > 1 && !rule.drop_last,
          .drop_last = rule.drop_last};
}

}  // namespace acc::detail
