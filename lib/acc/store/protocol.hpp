// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// The operations of PyTorch's TCPStore, with their numbers on the wire (torch 2.4 to 2.15).
enum class Op : std::uint8_t {
  validate = 0,
  set = 1,
  compare_set = 2,
  get = 3,
  add = 4,
  check = 5,
  wait = 6,
  get_num_keys = 7,
  delete_key = 8,
  append = 9,
  multi_get = 10,
  multi_set = 11,
  cancel_wait = 12,
  ping = 13,
  queue_push = 14,
  queue_pop = 15,
  queue_len = 16,
  list_keys = 17,
  barrier = 18,
};

/// The magic number of the `validate` that opens every connection.
inline constexpr std::uint32_t kStoreMagic = 0x3C85F7CE;

/// One-byte replies. `check` and `wait` use the same numbers.
inline constexpr std::uint8_t kReady = 0;
inline constexpr std::uint8_t kNotReady = 1;
inline constexpr std::uint8_t kStopWaiting = 0;
inline constexpr std::uint8_t kWaitCanceled = 1;

/// One request. `op` defines the number of keys and values, and whether `number` is used; a `multi_set` has
/// one value per key, a `compare_set` the expected and the desired value.
struct Request {
  Op op = Op::validate;
  std::vector<std::string> keys = {};
  std::vector<std::string> values = {};
  std::int64_t number = 0;  ///< magic, nonce, delta of `add`, world size of `barrier`

  bool operator==(const Request&) const = default;
};

/// Limits of one request. A longer one is refused before memory is allocated for it.
struct RequestLimits {
  std::size_t max_key_bytes = std::size_t{1} << 20U;
  std::size_t max_value_bytes = std::size_t{1} << 30U;
  std::size_t max_keys = std::size_t{1} << 20U;
  std::size_t max_request_bytes = std::size_t{1} << 31U;  ///< keys and values together
};

/// The bytes of a request as a client sends them.
std::string encode(const Request& request);

/// Parses the byte stream of one connection into requests. The stream may arrive in pieces of any size;
/// memory grows with the bytes received, never with an announced length.
class RequestParser {
 public:
  explicit RequestParser(RequestLimits limits);

  /// Consumes the front of `bytes` until a request is complete. Absent if `bytes` is used up and the request
  /// continues in the next piece, or if the stream is broken().
  std::optional<Request> next(std::string_view& bytes);

  /// The stream is invalid: it did not open with `validate` and the right magic, has an unknown operation, or
  /// exceeds a limit. No more is parsed.
  bool broken() const { return broken_; }

  /// The stream has opened with `validate` and the right magic.
  bool validated() const { return validated_; }

  /// A request has begun and is not complete.
  bool in_request() const { return step_ != Step::op; }
  /// Approximate memory of the current request.
  std::size_t memory() const { return memory_; }

 private:
  enum class Step { op, count, key_length, key, value_length, value, number, done };

  bool advance(std::string_view& bytes);
  void begin(std::uint8_t op);
  void on_length(std::uint64_t length);
  bool receive_text(std::string_view& bytes, std::string& text);
  std::optional<std::uint64_t> receive_integer(std::string_view& bytes, std::size_t width);
  Step step_after_item() const;

  RequestLimits limits_;
  Request request_;
  Step step_ = Step::op;
  std::uint64_t keys_left_ = 0;
  std::uint64_t values_left_ = 0;  // of the current key
  std::uint64_t text_left_ = 0;
  std::uint64_t request_bytes_ = 0;  // as announced
  std::size_t memory_ = 0;
  std::array<char, 8> integer_ = {};
  std::size_t integer_size_ = 0;
  bool validated_ = false;
  bool broken_ = false;
};

}  // namespace acc::launcher
