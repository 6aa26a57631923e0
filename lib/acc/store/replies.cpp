// SPDX-License-Identifier: Apache-2.0
#include "acc/store/replies.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace acc::launcher {
namespace {

// Up to this size a copy is cheaper than a separate piece.
constexpr std::size_t kShortValue = 256;

template <typename Integer>
std::string_view bytes_of(const Integer& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

void Replies::add_byte(std::uint8_t value) {
  add_bytes(bytes_of(value));
}

void Replies::add_u32(std::uint32_t value) {
  add_bytes(bytes_of(value));
}

void Replies::add_i64(std::int64_t value) {
  add_bytes(bytes_of(value));
}

void Replies::add_text(std::string_view text) {
  add_i64(static_cast<std::int64_t>(text.size()));
  add_bytes(text);
}

void Replies::add_value(const std::shared_ptr<const std::string>& value) {
  if (!value || value->size() <= kShortValue) {
    add_text(value ? std::string_view(*value) : std::string_view());
    return;
  }
  add_i64(static_cast<std::int64_t>(value->size()));
  pieces_.push_back({.value = value});
  size_ += value->size();
  cost_ += sizeof(Piece);
}

void Replies::append(Replies other) {
  pieces_.insert(pieces_.end(), std::make_move_iterator(other.pieces_.begin()),
                 std::make_move_iterator(other.pieces_.end()));
  size_ += other.size_;
  cost_ += other.cost_;
}

void Replies::add_bytes(std::string_view bytes) {
  if (pieces_.empty() || pieces_.back().value) {
    pieces_.emplace_back();
    cost_ += sizeof(Piece);
  }
  pieces_.back().text += bytes;
  size_ += bytes.size();
  cost_ += bytes.size();
}

std::vector<std::string_view> Replies::front(std::size_t max_pieces) const {
  std::vector<std::string_view> views;
  for (std::size_t i = first_; i < pieces_.size() && views.size() < max_pieces; ++i) {
    views.push_back(pieces_[i].view());
  }
  if (!views.empty()) views.front().remove_prefix(offset_);
  return views;
}

void Replies::sent(std::size_t bytes) {
  size_ -= bytes;
  if (size_ == 0) {
    clear();
    return;
  }
  offset_ += bytes;
  while (offset_ >= pieces_[first_].view().size()) {
    offset_ -= pieces_[first_].view().size();
    cost_ -= sizeof(Piece) + pieces_[first_].text.size();
    pieces_[first_++] = {};
  }
}

void Replies::clear() {
  // Frees the memory of a long reply.
  if (cost_ > kShortValue) pieces_ = {};
  pieces_.clear();
  first_ = offset_ = size_ = cost_ = 0;
}

namespace {

// Larger than any value of a store.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32U;

// Size of the number that begins a reply.
std::size_t number_width(Op op) {
  switch (op) {
    case Op::check:
    case Op::wait:
    case Op::cancel_wait:
    case Op::barrier:
      return 1;
    case Op::ping:
      return 4;
    case Op::add:
    case Op::delete_key:
      return 8;
    default:
      return 0;
  }
}

std::uint64_t known_texts(const Request& request) {
  if (request.op == Op::multi_get) return request.keys.size();
  return request.op == Op::get || request.op == Op::compare_set ? 1 : 0;
}

}  // namespace

bool has_reply(Op op) {
  return number_width(op) > 0 || op == Op::get || op == Op::compare_set || op == Op::multi_get;
}

void ReplyParser::expect(const Request& request) {
  reply_ = {};
  width_ = number_width(request.op);
  texts_left_ = known_texts(request);
  step_ = width_ > 0 ? Step::number : step_after_item();
}

std::optional<Reply> ReplyParser::next(std::string_view& bytes) {
  while (!broken_ && step_ != Step::done) {
    if (step_ == Step::text) {
      const std::size_t size = std::min<std::size_t>(text_left_, bytes.size());
      reply_.texts.back().append(bytes.substr(0, size));
      bytes.remove_prefix(size);
      text_left_ -= size;
      if (text_left_ > 0) return std::nullopt;
      --texts_left_;
      step_ = step_after_item();
      continue;
    }
    const std::size_t width = step_ == Step::number ? width_ : sizeof(std::uint64_t);
    const std::size_t size = std::min(width - integer_size_, bytes.size());
    std::copy_n(bytes.begin(), size, integer_.begin() + integer_size_);
    bytes.remove_prefix(size);
    integer_size_ += size;
    if (integer_size_ < width) return std::nullopt;
    std::uint64_t number = 0;  // in host byte order
    std::memcpy(&number, integer_.data(), width);
    integer_size_ = 0;
    on_number(number);
  }
  if (broken_) return std::nullopt;
  return std::exchange(reply_, {});
}

void ReplyParser::on_number(std::uint64_t number) {
  if (step_ == Step::length) {
    broken_ = number > kMaxBytes;
    text_left_ = number;
    reply_.texts.emplace_back();
    step_ = Step::text;
    return;
  }
  reply_.number = static_cast<std::int64_t>(number);
  step_ = step_after_item();
}

}  // namespace acc::launcher
