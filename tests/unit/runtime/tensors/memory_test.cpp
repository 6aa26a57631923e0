// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/memory.hpp"

#include <ATen/ops/empty.h>
#include <malloc.h>

#include <stdexcept>
#include <vector>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace memory_test {

TEST_CASE("memory: large blocks are kept on the heap instead of returned to the kernel", "[runtime]") {
  acc::detail::keep_freed_memory();
  const auto mapped = ::mallinfo2().hblks;
  const std::vector<char> large(std::size_t{1} << 24U);
  CHECK(::mallinfo2().hblks == mapped);
}

TEST_CASE("memory: malloc is not changed if the environment tunes it", "[runtime]") {
  CHECK(acc::detail::may_keep_freed_memory({}));
  CHECK(acc::detail::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.rtld.nns=4"}}));
  CHECK_FALSE(acc::detail::may_keep_freed_memory({{"GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1"}}));
  CHECK_FALSE(acc::detail::may_keep_freed_memory({{"MALLOC_TRIM_THRESHOLD_", "1"}}));
  CHECK_FALSE(acc::detail::may_keep_freed_memory({{"MALLOC_MMAP_THRESHOLD_", "1"}}));
}

TEST_CASE("executable_batch_size: LibTorch's out-of-memory error is recognized", "[runtime]") {
  try {
    at::empty({std::int64_t{1} << 60}, at::kByte);
    FAIL("an exbibyte was given");
  } catch (const std::exception& error) {
    INFO(error.what());
    CHECK(acc::is_out_of_memory(error));
  }
  CHECK(acc::is_out_of_memory(std::runtime_error("CUDA out of memory. Tried to allocate 2 GiB")));
  CHECK(acc::is_out_of_memory(std::bad_alloc()));
  CHECK_FALSE(acc::is_out_of_memory(std::runtime_error("shapes differ")));
}

TEST_CASE("executable_batch_size: tries nine tenths each time until it fits", "[runtime]") {
  std::vector<std::size_t> tried;
  const std::size_t batch_size = acc::find_executable_batch_size(
      [&](std::size_t size) {
        tried.push_back(size);
        if (size > 90) throw std::bad_alloc();
        return size;
      },
      128);
  CHECK(tried == std::vector<std::size_t>{128, 115, 103, 92, 82});
  CHECK(batch_size == 82);
}

TEST_CASE("executable_batch_size: other exceptions pass through, and it fails when even 1 does not fit",
          "[runtime]") {
  CHECK_THROWS_AS(acc::find_executable_batch_size([](std::size_t) { throw std::logic_error("bug"); }),
                  std::logic_error);
  CHECK_THROWS_WITH(acc::find_executable_batch_size([](std::size_t) { throw std::bad_alloc(); }, 3),
                    "find_executable_batch_size: out of memory with every batch size, even 1");
}

}  // namespace memory_test
