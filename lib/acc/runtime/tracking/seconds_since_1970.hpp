// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace acc {

/// Now, as trackers write it.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace acc
