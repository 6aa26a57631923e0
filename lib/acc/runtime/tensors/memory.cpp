// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/memory.hpp"

#include <c10/util/Exception.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "acc/base/error.hpp"

namespace acc {

namespace detail {

void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kMax = 1 << 30;
  // The maximum of older versions of glibc.
  constexpr int kMaxOfOldVersions = 32 << 20;
  if (::mallopt(M_MMAP_THRESHOLD, kMax) == 0) ::mallopt(M_MMAP_THRESHOLD, kMaxOfOldVersions);
  ::mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

bool may_keep_freed_memory(const Environment& environment) {
  return !environment.contains("MALLOC_MMAP_THRESHOLD_") && !environment.contains("MALLOC_TRIM_THRESHOLD_") &&
         environment.get("GLIBC_TUNABLES").find("glibc.malloc.") == std::string::npos;
}

void refuse_batch_size() {
  throw Error({.kind = ErrorKind::system,
               .what = "out of memory with every batch size, even 1",
               .where = "find_executable_batch_size"});
}

}  // namespace detail

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // The texts that accelerate 1.15 checks, for libraries without an exception type of their own.
  constexpr std::array<std::string_view, 3> kTexts{" out of memory.",
                                                   "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",
                                                   "DefaultCPUAllocator: can't allocate memory"};
  const std::string_view text = error.what();
  return std::ranges::any_of(kTexts, [&](std::string_view one) { return text.find(one) != text.npos; });
}

}  // namespace acc
