// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace acc::launcher {

/// What a person should see of the text of an error: without the frames of LibTorch's own C++ stack, and
/// without the warnings that Python and LibTorch add after it, while the program that has failed ends.
std::string readable_error(std::string_view text);

/// Keeps the end of a stream for a failure report: 30 lines, at most 16 KiB, of what is left by
/// readable_error().
class Tail {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 10U;
  static constexpr int kMostLines = 30;
  /// So much is looked at.
  static constexpr std::size_t kMaxRaw = 2 * kMostBytes;

  void append(std::string_view chunk);

  /// The last lines; a first line that was cut off is left out.
  std::string lines() const;

 private:
  std::string bytes_ = {};
  bool cut_ = false;
};

/// The same of a file's end; empty when it cannot be read.
std::string tail_of_file(const std::filesystem::path& file);

}  // namespace acc::launcher
