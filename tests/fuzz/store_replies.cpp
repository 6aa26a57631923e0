// SPDX-License-Identifier: Apache-2.0
// What a store answers: the replies to the client's requests, in pieces. They are the same in one piece, and
// memory grows with the bytes received, not with a length that was announced. A store that answers the same
// sends the same bytes.
#include <memory>
#include <string>
#include <vector>

#include "acc/store/replies.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::Op;
using acc::launcher::Replies;
using acc::launcher::Reply;
using acc::launcher::ReplyParser;
using acc::launcher::Request;

constexpr std::size_t kOps = 19;

struct Result {
  std::vector<Reply> replies = {};
  bool broken = false;
  bool operator==(const Result&) const = default;
};

std::vector<Request> requests_in(fuzz::Choices& choices) {
  std::vector<Request> requests;
  for (std::size_t count = choices.below(6); count > 0; --count) {
    Request request = {.op = static_cast<Op>(choices.below(kOps))};
    if (request.op == Op::multi_get) request.keys.resize(choices.below(4));
    if (has_reply(request.op)) requests.push_back(std::move(request));
  }
  return requests;
}

Result parse(const std::vector<Request>& requests, std::string_view bytes, std::size_t piece_size) {
  Result result;
  ReplyParser parser;
  std::string_view piece = bytes.substr(0, 0);
  for (const Request& request : requests) {
    parser.expect(request);
    auto reply = parser.next(piece);
    while (!reply && !parser.broken() && !bytes.empty()) {
      piece = bytes.substr(0, piece_size);
      bytes.remove_prefix(piece.size());
      reply = parser.next(piece);
    }
    if (reply) result.replies.push_back(std::move(*reply));
    result.broken = parser.broken();
    if (!reply) break;
  }
  return result;
}

// As a store writes it.
Replies written(const Request& request, const Reply& reply) {
  Replies replies;
  if (request.op == Op::ping)
    replies.add_u32(static_cast<std::uint32_t>(reply.number));
  else if (request.op == Op::add || request.op == Op::delete_key)
    replies.add_i64(reply.number);
  else if (reply.texts.empty() && request.op != Op::multi_get)
    replies.add_byte(static_cast<std::uint8_t>(reply.number));
  for (const std::string& text : reply.texts) replies.add_value(std::make_shared<const std::string>(text));
  return replies;
}

// What is sent, `max_bytes` at a time.
std::string sent(Replies replies, std::size_t max_bytes) {
  std::string bytes;
  while (!replies.empty()) {
    const std::string_view piece = replies.front(1).front().substr(0, max_bytes);
    bytes += piece;
    replies.sent(piece.size());
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  fuzz::Choices choices(bytes);
  const std::vector<Request> requests = requests_in(choices);
  const std::size_t piece_size = 1 + choices.below(16);
  const Result whole = parse(requests, bytes, SIZE_MAX);
  std::size_t texts = 0;
  for (const Reply& reply : whole.replies)
    for (const std::string& text : reply.texts) texts += text.size();
  fuzz::require(texts <= bytes.size(), "replies are not longer than what was received");
  fuzz::require(parse(requests, bytes, piece_size) == whole, "replies in pieces are the same");
  Replies replies;
  for (std::size_t i = 0; i < whole.replies.size(); ++i)
    replies.append(written(requests.at(i), whole.replies.at(i)));
  fuzz::require(bytes.starts_with(sent(std::move(replies), piece_size)), "a store sends what is read");
  return 0;
}
