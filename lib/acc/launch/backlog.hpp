// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace acc::launcher {

/// Text that could not be written yet, in order.
class Backlog {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return kept_.size() - written_; }
  std::string_view text() const { return std::string_view(kept_).substr(written_); }

  void add(std::string_view text) { kept_ += text; }

  /// Text that was written at once, while nothing was kept.
  void pass(std::string_view text) {
    if (!text.empty()) cut_ = text.back() != '\n';
  }

  /// Keeps about `max` bytes at most and drops what does not fit, from the beginning of a line where that is
  /// still possible. What is kept after that begins a line.
  void add_or_drop(std::string_view text, std::size_t max);

  /// The first `bytes` of text() are written.
  void remove(std::size_t bytes);

  /// Gives up what is kept.
  void drop();

  std::uint64_t dropped_bytes() const { return dropped_; }

 private:
  std::string kept_ = {};
  std::size_t written_ = 0;
  std::uint64_t dropped_ = 0;
  bool dropping_ = false;
  /// The bytes dropped last ended within a line, whose rest is dropped as well.
  bool within_line_ = false;
  /// What was kept or passed last did not end with its line.
  bool cut_ = false;
};

}  // namespace acc::launcher
