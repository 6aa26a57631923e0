// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace acc::launcher {

/// A worker's standard output and error.
enum class StreamName { out, err };

/// The end of what one worker wrote, both streams in the order in which it came. Positions count bytes from
/// the beginning and never go back, so that a reader that comes again misses nothing unnoticed.
class OutputRing {
 public:
  /// What is kept at least, when so much was written; a little more may be.
  static constexpr std::size_t kKept = std::size_t{32} << 10U;

  void append(StreamName stream, std::string_view bytes);

  /// Bytes of one stream in a row.
  struct Piece {
    StreamName stream = StreamName::out;
    std::uint64_t begin = 0;
    std::string bytes = {};
  };

  /// The piece at `position`, or the oldest one kept when that is gone; without bytes at the end. The next
  /// position is behind it.
  Piece read(std::uint64_t position) const;

  std::uint64_t begin() const { return pieces_.empty() ? end_ : pieces_.front().begin; }
  std::uint64_t end() const { return end_; }

 private:
  std::deque<Piece> pieces_ = {};
  std::uint64_t end_ = 0;
};

}  // namespace acc::launcher
