// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace acc::launcher {

/// The text of an error without the C++ stack frames of LibTorch and without the warnings that Python and
/// LibTorch print while the failed program exits.
std::string readable_error(std::string_view text);

/// Keeps the end of a stream for a failure report: 30 lines, at most 16 KiB, of what is left by
/// readable_error().
class Tail {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 10U;
  static constexpr int kMaxLines = 30;
  /// The number of bytes that is kept before readable_error().
  static constexpr std::size_t kMaxRaw = 2 * kMaxBytes;

  void append(std::string_view chunk);

  /// The last lines, without a truncated first line.
  std::string lines() const;

 private:
  std::string bytes_ = {};
  bool cut_ = false;
};

/// The same lines of the end of a file; empty if it cannot be read.
std::string tail_of_file(const std::filesystem::path& file);

}  // namespace acc::launcher
