// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/executable_batch_size.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "acc/base/error.hpp"

namespace acc {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // The texts that accelerate 1.15 knows, for libraries that throw no type of their own.
  constexpr std::array<std::string_view, 3> kTexts{" out of memory.",
                                                   "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",
                                                   "DefaultCPUAllocator: can't allocate memory"};
  const std::string_view text = error.what();
  return std::ranges::any_of(kTexts, [&](std::string_view one) { return text.find(one) != text.npos; });
}

void refuse_batch_size() {
  throw Error({.kind = ErrorKind::system,
               .what = "memory runs out whatever the batch size",
               .where = "find_executable_batch_size"});
}

}  // namespace acc
