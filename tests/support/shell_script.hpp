// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc::test {

/// A command of sh that writes `bytes`, which may be any.
inline std::string command_that_writes(const std::string& bytes) {
  std::string text = "printf '";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {'\\', static_cast<char>('0' + (byte >> 6U)), static_cast<char>('0' + (byte >> 3U & 7U)),
             static_cast<char>('0' + (byte & 7U))};
  }
  return text + "'";
}

}  // namespace acc::test
