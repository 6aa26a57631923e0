// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/stream_reader.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"

namespace acc {

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

}  // namespace acc
