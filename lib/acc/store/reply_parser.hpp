// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/protocol.hpp"

namespace acc::launcher {

/// What a store answered. Which members count follows from the operation.
struct Reply {
  std::int64_t number = 0;  ///< a one-byte answer, a sum, a count
  std::vector<std::string> texts = {};

  bool operator==(const Reply&) const = default;
};

/// Whether a store answers this operation at all: `set` and its like are taken in silence.
bool has_reply(Op op);

/// Cuts the byte stream of a store into replies. The stream may arrive in pieces of any size; memory grows
/// with the bytes received, never with a length that was only claimed.
class ReplyParser {
 public:
  /// From now on the answer to `request` is read.
  void expect(const Request& request);

  /// Takes bytes off the front of `bytes` until the reply is whole. Absent: `bytes` is used up and the reply
  /// goes on in the next piece, or the stream is broken().
  std::optional<Reply> next(std::string_view& bytes);

  /// The stream is no answer of a store: it claims a negative or absurd length.
  bool broken() const { return broken_; }

 private:
  enum class Step { number, length, text, done };

  void take_number(std::uint64_t number);
  Step step_after_item() const { return texts_left_ > 0 ? Step::length : Step::done; }

  Op op_ = Op::validate;
  Reply reply_ = {};
  Step step_ = Step::done;
  std::size_t width_ = 0;
  std::uint64_t texts_left_ = 0;
  std::uint64_t text_left_ = 0;
  std::array<char, 8> integer_ = {};
  std::size_t integer_size_ = 0;
  bool broken_ = false;
};

}  // namespace acc::launcher
