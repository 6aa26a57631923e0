// SPDX-License-Identifier: Apache-2.0
#include "acc/base/short_size.hpp"

#include <fmt/format.h>

namespace acc {

std::string short_size(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20U);
  if (mib < 1024) return fmt::format("{:.{}f} MiB", mib, mib < 10 ? 1 : 0);
  return fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace acc
