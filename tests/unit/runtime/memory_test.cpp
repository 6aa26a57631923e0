// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/memory.hpp"

#include "support/catch.hpp"

TEST_CASE("memory: malloc is left alone where the environment tunes it", "[runtime]") {
  CHECK(acc::may_keep_freed_memory({}));
  CHECK(acc::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.rtld.nns=4"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"MALLOC_TRIM_THRESHOLD_", "1"}}));
  CHECK_FALSE(acc::may_keep_freed_memory({{"MALLOC_MMAP_THRESHOLD_", "1"}}));
}
