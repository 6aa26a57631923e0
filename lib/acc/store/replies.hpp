// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/protocol.hpp"

namespace acc::launcher {

/// Replies to be sent to one client, in the encoding of PyTorch's TCPStore. Long values are shared, not
/// copied: a thousand ranks that read the same value cost one value.
class Replies {
 public:
  void add_byte(std::uint8_t value);
  void add_u32(std::uint32_t value);
  void add_i64(std::int64_t value);
  /// Adds the length and the bytes.
  void add_text(std::string_view text);
  /// The same for a value of the store; null is sent as an empty text.
  void add_value(const std::shared_ptr<const std::string>& value);

  /// Appends all of `other`.
  void append(Replies other);

  /// Up to `max_pieces` pieces from the front. Valid until the next change.
  std::vector<std::string_view> front(std::size_t max_pieces) const;

  /// Removes the first `bytes` bytes, which were sent.
  void sent(std::size_t bytes);

  void clear();

  bool empty() const { return size_ == 0; }
  /// Bytes not yet sent.
  std::size_t size() const { return size_; }
  /// Memory held for this client alone, without shared values.
  std::size_t cost() const { return cost_; }

 private:
  struct Piece {
    std::string text = {};
    std::shared_ptr<const std::string> value = {};  // in place of `text`

    std::string_view view() const { return value ? *value : text; }
  };

  void add_bytes(std::string_view bytes);

  std::vector<Piece> pieces_;
  std::size_t first_ = 0;   // pieces before it were sent
  std::size_t offset_ = 0;  // bytes of the first piece that were sent
  std::size_t size_ = 0;
  std::size_t cost_ = 0;
};

/// The reply of a store. The operation defines which members are used.
struct Reply {
  std::int64_t number = 0;  ///< a one-byte answer, a sum, the number of deleted keys
  std::vector<std::string> texts = {};

  bool operator==(const Reply&) const = default;
};

/// Whether the operation, one of those of StoreClient, has a reply; `set` and its like have none.
bool has_reply(Op op);

/// Parses the byte stream of a store into replies to StoreClient's operations. The stream may arrive in
/// pieces of any size; memory grows with the bytes received, never with an announced length.
class ReplyParser {
 public:
  /// The reply to `request` comes next.
  void expect(const Request& request);

  /// Consumes the front of `bytes` until the reply is complete. Absent if `bytes` is used up and the reply
  /// continues in the next piece, or if the stream is broken().
  std::optional<Reply> next(std::string_view& bytes);

  /// The stream is not a reply of a store: it announces a negative or absurd length.
  bool broken() const { return broken_; }

 private:
  enum class Step { number, length, text, done };

  void on_number(std::uint64_t number);
  Step step_after_item() const { return texts_left_ > 0 ? Step::length : Step::done; }

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
