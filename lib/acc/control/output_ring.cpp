// SPDX-License-Identifier: Apache-2.0
#include "acc/control/output_ring.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

// What goes when the ring is full, and the longest message to a reader.
constexpr std::size_t kMostPiece = std::size_t{4} << 10U;

}  // namespace

void OutputRing::append(StreamName stream, std::string_view bytes) {
  if (bytes.size() > kKept) {
    end_ += bytes.size() - kKept;
    bytes.remove_prefix(bytes.size() - kKept);
    pieces_.clear();
  }
  while (!bytes.empty()) {
    if (pieces_.empty() || pieces_.back().stream != stream || pieces_.back().bytes.size() >= kMostPiece)
      pieces_.push_back({stream, end_, {}});
    std::string& last = pieces_.back().bytes;
    const std::size_t size = std::min(bytes.size(), kMostPiece - last.size());
    last += bytes.substr(0, size);
    end_ += size;
    bytes.remove_prefix(size);
  }
  while (end_ - begin() > kKept + kMostPiece) pieces_.pop_front();
}

OutputRing::Piece OutputRing::read(std::uint64_t position) const {
  for (const Piece& piece : pieces_) {
    if (piece.begin + piece.bytes.size() <= position) continue;
    const std::size_t skipped = position > piece.begin ? position - piece.begin : 0;
    return {piece.stream, piece.begin + skipped, piece.bytes.substr(skipped)};
  }
  return {.begin = end_};
}

}  // namespace acc::launcher
