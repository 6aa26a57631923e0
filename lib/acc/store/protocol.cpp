// SPDX-License-Identifier: Apache-2.0
#include "acc/store/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace acc::launcher {
namespace {

// The arguments of an operation, in wire order: keys with their values, then a number.
struct Layout {
  bool counted = false;  // a u64 with the number of keys comes first
  std::uint8_t keys = 0;
  std::uint8_t values_per_key = 0;
  std::uint8_t number_bytes = 0;
};

constexpr Layout kNothing = {};
constexpr Layout kKey = {.keys = 1};
constexpr Layout kKeyAndValue = {.keys = 1, .values_per_key = 1};
constexpr Layout kKeyAndNumber = {.keys = 1, .number_bytes = 8};
constexpr Layout kKeys = {.counted = true};
constexpr Layout kShortNumber = {.number_bytes = 4};

constexpr std::array<Layout, 19> kLayouts = {
    kShortNumber,                                  // validate
    kKeyAndValue,                                  // set
    Layout{.keys = 1, .values_per_key = 2},        // compare_set
    kKey,                                          // get
    kKeyAndNumber,                                 // add
    kKeys,                                         // check
    kKeys,                                         // wait
    kNothing,                                      // get_num_keys
    kKey,                                          // delete_key
    kKeyAndValue,                                  // append
    kKeys,                                         // multi_get
    Layout{.counted = true, .values_per_key = 1},  // multi_set
    kNothing,                                      // cancel_wait
    kShortNumber,                                  // ping
    kKeyAndValue,                                  // queue_push
    kKey,                                          // queue_pop
    kKey,                                          // queue_len
    kNothing,                                      // list_keys
    kKeyAndNumber,                                 // barrier
};

const Layout& layout_of(Op op) {
  return kLayouts[static_cast<std::size_t>(op)];
}

// Overhead of a text in a growing list.
constexpr std::size_t kTextBytes = 96;
constexpr std::size_t kTrustedLength = std::size_t{1} << 20U;

// Integers are in host byte order: PyTorch does not convert them.
template <typename Integer>
void append_integer(std::string& bytes, Integer value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Integer>
Integer read_integer(const char* bytes) {
  Integer value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void append_text(std::string& bytes, std::string_view text) {
  append_integer(bytes, std::uint64_t{text.size()});
  bytes += text;
}

}  // namespace

std::string encode(const Request& request) {
  const Layout& layout = layout_of(request.op);
  std::string bytes(1, static_cast<char>(request.op));
  if (layout.counted) append_integer(bytes, std::uint64_t{request.keys.size()});
  std::size_t value = 0;
  for (const std::string& key : request.keys) {
    append_text(bytes, key);
    for (int i = 0; i < layout.values_per_key; ++i) append_text(bytes, request.values.at(value++));
  }
  if (layout.number_bytes == 4) append_integer(bytes, static_cast<std::uint32_t>(request.number));
  if (layout.number_bytes == 8) append_integer(bytes, request.number);
  return bytes;
}

RequestParser::RequestParser(RequestLimits limits) : limits_(limits) {}

std::optional<Request> RequestParser::next(std::string_view& bytes) {
  while (!broken_ && advance(bytes)) {
    if (step_ != Step::done) continue;
    step_ = Step::op;
    validated_ = request_.op != Op::validate || request_.number == kStoreMagic;
    broken_ = !validated_;
    if (!broken_) return std::exchange(request_, {});
  }
  return std::nullopt;
}

// Parses one element; returns false if its bytes have not all arrived.
bool RequestParser::advance(std::string_view& bytes) {
  switch (step_) {
    case Step::op:
      if (bytes.empty()) return false;
      begin(static_cast<std::uint8_t>(bytes.front()));
      bytes.remove_prefix(1);
      return true;
    case Step::count:
    case Step::key_length:
    case Step::value_length: {
      const auto length = receive_integer(bytes, sizeof(std::uint64_t));
      if (length) on_length(*length);
      return length.has_value();
    }
    case Step::key:
      if (!receive_text(bytes, request_.keys.back())) return false;
      --keys_left_;
      values_left_ = layout_of(request_.op).values_per_key;
      step_ = step_after_item();
      return true;
    case Step::value:
      if (!receive_text(bytes, request_.values.back())) return false;
      --values_left_;
      step_ = step_after_item();
      return true;
    case Step::number: {
      const auto number = receive_integer(bytes, layout_of(request_.op).number_bytes);
      if (!number) return false;
      request_.number = static_cast<std::int64_t>(*number);
      step_ = Step::done;
      return true;
    }
    case Step::done:
      return true;
  }
  return false;
}

void RequestParser::begin(std::uint8_t op) {
  broken_ = op >= kLayouts.size() || (!validated_ && op != static_cast<std::uint8_t>(Op::validate));
  if (broken_) return;
  request_.op = static_cast<Op>(op);
  request_bytes_ = 0;
  memory_ = 0;
  keys_left_ = layout_of(request_.op).keys;
  values_left_ = 0;
  step_ = layout_of(request_.op).counted ? Step::count : step_after_item();
}

// Handles a count or the length of a text. Reserves no memory for an announced length.
void RequestParser::on_length(std::uint64_t length) {
  if (step_ == Step::count) {
    broken_ = length > limits_.max_keys;
    keys_left_ = length;
    step_ = step_after_item();
    return;
  }
  const bool is_key = step_ == Step::key_length;
  // Each length is within its own limit, so the sum cannot overflow.
  broken_ = length > (is_key ? limits_.max_key_bytes : limits_.max_value_bytes) ||
            (request_bytes_ += length) > limits_.max_request_bytes;
  (is_key ? request_.keys : request_.values).emplace_back();
  memory_ += kTextBytes;
  text_left_ = length;
  step_ = is_key ? Step::key : Step::value;
}

bool RequestParser::receive_text(std::string_view& bytes, std::string& text) {
  const std::size_t size = std::min<std::size_t>(text_left_, bytes.size());
  // After so many bytes the announced length is trusted, to avoid repeated reallocation.
  if (text.size() >= kTrustedLength) text.reserve(text.size() + text_left_);
  text.append(bytes.substr(0, size));
  bytes.remove_prefix(size);
  text_left_ -= size;
  memory_ += size;
  return text_left_ == 0;
}

// Absent until all of its bytes have arrived.
std::optional<std::uint64_t> RequestParser::receive_integer(std::string_view& bytes, std::size_t width) {
  const std::size_t size = std::min(width - integer_size_, bytes.size());
  std::copy_n(bytes.begin(), size, integer_.begin() + integer_size_);
  bytes.remove_prefix(size);
  integer_size_ += size;
  if (integer_size_ < width) return std::nullopt;
  integer_size_ = 0;
  if (width == sizeof(std::uint32_t)) return read_integer<std::uint32_t>(integer_.data());
  return read_integer<std::uint64_t>(integer_.data());
}

RequestParser::Step RequestParser::step_after_item() const {
  if (values_left_ > 0) return Step::value_length;
  if (keys_left_ > 0) return Step::key_length;
  return layout_of(request_.op).number_bytes > 0 ? Step::number : Step::done;
}

}  // namespace acc::launcher
