// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/out_of_memory.hpp"

#include <fmt/format.h>

namespace acc::detail {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

}  // namespace

Error explain_out_of_memory(const OutOfMemory& failure) {
  // Blocks that the allocator keeps, but in pieces too small for what was wanted.
  const bool fragmented = failure.reserved - failure.allocated >= failure.requested;
  return Error(
      {.kind = ErrorKind::system,
       .what = fmt::format(
           "out of memory: {} wanted; the device has {} free of {}; LibTorch's allocator has {} "
           "allocated of {} reserved, and its largest free block has {}",
           size_text(failure.requested), size_text(failure.free), size_text(failure.total),
           size_text(failure.allocated), size_text(failure.reserved), size_text(failure.largest_free_block)),
       .where = fmt::format("cuda:{}", static_cast<int>(failure.device)),
       .hint = fragmented
                   ? "the free blocks are too small: set PYTORCH_ALLOC_CONF=expandable_segments:True"
                   : "smaller batches with more accumulation, or sharded models (--use_fsdp), need less"});
}

}  // namespace acc::detail
