// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/memory.hpp"

#include <malloc.h>

#include <vector>

#include "support/catch.hpp"

TEST_CASE("memory: large blocks come from the heap, which stays, and not from the kernel", "[runtime]") {
  acc::keep_freed_memory();
  const auto mapped = ::mallinfo2().hblks;
  const std::vector<char> large(std::size_t{1} << 24U);
  CHECK(::mallinfo2().hblks == mapped);
}

TEST_CASE("memory: malloc is left alone where the environment tunes it", "[runtime]") {
  CHECK(acc::may_keep_freed_memory({}));
  CHECK(acc::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.rtld.nns=4"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"MALLOC_TRIM_THRESHOLD_", "1"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"MALLOC_MMAP_THRESHOLD_", "1"}}));
}
