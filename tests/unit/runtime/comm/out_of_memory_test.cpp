// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/out_of_memory.hpp"

#include "support/catch.hpp"

namespace out_of_memory_test {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

acc::detail::OutOfMemory full_device() {
  return {.device = 1,
          .requested = 8 * kGiB,
          .free = 7 * kGiB + kGiB / 4,
          .total = 80 * kGiB,
          .allocated = 72 * kGiB,
          .reserved = 72 * kGiB + kGiB / 8,
          .largest_free_block = kGiB / 16};
}

}  // namespace

TEST_CASE("out_of_memory: the error has the device's memory, the allocator's, and what to do", "[runtime]") {
  const acc::Error error = acc::detail::explain_out_of_memory(full_device());
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(std::string(error.what()) ==
        "cuda:1: out of memory: 8.00 GiB wanted; the device has 7.25 GiB free of 80.00 GiB; LibTorch's "
        "allocator "
        "has 72.00 GiB allocated of 72.12 GiB reserved, and its largest free block has 64.0 MiB (smaller "
        "batches with more accumulation, or sharded models (--use_fsdp), need less)");
}

TEST_CASE("out_of_memory: where the allocator holds enough, but in pieces, the hint is about fragments",
          "[runtime]") {
  acc::detail::OutOfMemory failure = full_device();
  failure.allocated = 60 * kGiB;
  CHECK(acc::detail::explain_out_of_memory(failure).problems().front().hint ==
        "the free blocks are too small: set PYTORCH_ALLOC_CONF=expandable_segments:True");
}

}  // namespace out_of_memory_test
