// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/unique_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "acc/base/machine.hpp"

namespace acc::launcher {

std::filesystem::path make_unique_folder(const std::filesystem::path& stem,
                                         const std::function<void(const std::filesystem::path&)>& before) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr int kTries = 100;
  constexpr int kRandomLetters = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    std::filesystem::path folder = stem;
    std::uint64_t number = std::uint64_t{random_number()} << 32U | random_number();
    for (int letter = 0; letter < kRandomLetters; ++letter, number /= kLetters.size())
      folder += kLetters[number % kLetters.size()];
    before(folder);
    if (::mkdir(folder.c_str(), 0700) == 0) return folder;
    if (errno != EEXIST) break;
  }
  return {};
}

}  // namespace acc::launcher
