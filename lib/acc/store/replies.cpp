// SPDX-License-Identifier: Apache-2.0
#include "acc/store/replies.hpp"

#include <iterator>

namespace acc::launcher {
namespace {

// Below it a copy is cheaper than a piece of its own.
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

void Replies::append(Replies others) {
  pieces_.insert(pieces_.end(), std::make_move_iterator(others.pieces_.begin()),
                 std::make_move_iterator(others.pieces_.end()));
  size_ += others.size_;
  cost_ += others.cost_;
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

std::vector<std::string_view> Replies::front(std::size_t most) const {
  std::vector<std::string_view> views;
  for (std::size_t i = first_; i < pieces_.size() && views.size() < most; ++i) {
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
  // Room that one long answer needed is not kept for the life of the connection.
  if (cost_ > kShortValue) pieces_ = {};
  pieces_.clear();
  first_ = offset_ = size_ = cost_ = 0;
}

}  // namespace acc::launcher
