// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/memory.hpp"

#include <malloc.h>

namespace acc {

void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kMost = 1 << 30;
  // What older versions of glibc take at most.
  constexpr int kMostOfOld = 32 << 20;
  if (::mallopt(M_MMAP_THRESHOLD, kMost) == 0) ::mallopt(M_MMAP_THRESHOLD, kMostOfOld);
  ::mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

bool may_keep_freed_memory(const Environment& environment) {
  return !environment.contains("MALLOC_MMAP_THRESHOLD_") && !environment.contains("MALLOC_TRIM_THRESHOLD_") &&
         environment.get("GLIBC_TUNABLES").find("glibc.malloc.") == std::string::npos;
}

}  // namespace acc
