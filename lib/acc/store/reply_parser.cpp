// SPDX-License-Identifier: Apache-2.0
#include "acc/store/reply_parser.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace acc::launcher {
namespace {

// No value of a store is longer, and no store has more keys.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32U;
constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 32U;

// Bytes of the number that opens a reply.
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
    case Op::get_num_keys:
    case Op::delete_key:
    case Op::queue_pop:
    case Op::queue_len:
    case Op::list_keys:
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
  op_ = request.op;
  reply_ = {};
  width_ = number_width(op_);
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
    std::uint64_t number = 0;  // as the host keeps it: PyTorch does not convert
    std::memcpy(&number, integer_.data(), width);
    integer_size_ = 0;
    take_number(number);
  }
  if (broken_) return std::nullopt;
  return std::exchange(reply_, {});
}

void ReplyParser::take_number(std::uint64_t number) {
  if (step_ == Step::length) {
    broken_ = number > kMostBytes;
    text_left_ = number;
    reply_.texts.emplace_back();
    step_ = Step::text;
    return;
  }
  reply_.number = static_cast<std::int64_t>(number);
  if (op_ == Op::list_keys) texts_left_ = number;
  if (op_ == Op::queue_pop) texts_left_ = reply_.number > 0 ? 1 : 0;
  broken_ = texts_left_ > kMostTexts;
  step_ = step_after_item();
}

}  // namespace acc::launcher
