// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/replies.hpp"
#include "acc/store/service.hpp"
#include "support/catch.hpp"

namespace replies_parser_test {

namespace {

using acc::launcher::Op;
using acc::launcher::Replies;
using acc::launcher::Reply;
using acc::launcher::ReplyParser;
using acc::launcher::Request;

// The reply of our service, in pieces of `size` bytes.
std::vector<Reply> parsed(const std::vector<Request>& requests, std::size_t size) {
  acc::launcher::Service service;
  std::vector<Reply> result;
  for (const Request& request : requests) {
    Replies replies;
    acc::launcher::Work work = {.request = request};
    REQUIRE(service.carry_out(0, acc::launcher::Writer::member, work, replies) ==
            acc::launcher::Service::Outcome::done);
    std::string bytes;
    for (const std::string_view piece : replies.front(1000)) bytes += piece;
    CHECK(bytes.empty() != acc::launcher::has_reply(request.op));
    if (!acc::launcher::has_reply(request.op)) continue;
    ReplyParser parser;
    parser.expect(request);
    std::optional<Reply> reply;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      CHECK_FALSE(reply.has_value());
      std::string_view piece = std::string_view(bytes).substr(at, size);
      reply = parser.next(piece);
      CHECK(piece.empty());
    }
    REQUIRE(reply.has_value());
    result.push_back(*reply);
  }
  return result;
}

}  // namespace

TEST_CASE("reply parser: parses every reply that the client asks for, in pieces of any size", "[store]") {
  const std::size_t size = GENERATE(1, 3, 8, 1000);
  const auto replies = parsed({{.op = Op::set, .keys = {"/a"}, .values = {"value"}},
                               {.op = Op::get, .keys = {"/a"}},
                               {.op = Op::compare_set, .keys = {"/c"}, .values = {"", "new"}},
                               {.op = Op::add, .keys = {"/n"}, .number = -3},
                               {.op = Op::check, .keys = {"/a", "/missing"}},
                               {.op = Op::wait, .keys = {"/a"}},
                               {.op = Op::multi_get, .keys = {"/a", "/n"}},
                               {.op = Op::delete_key, .keys = {"/c"}},
                               {.op = Op::cancel_wait},
                               {.op = Op::ping, .number = 4711}},
                              size);
  CHECK(replies == std::vector<Reply>{{.texts = {"value"}},
                                      {.texts = {"new"}},
                                      {.number = -3},
                                      {.number = 1},
                                      {.number = 0},
                                      {.texts = {"value", "-3"}},
                                      {.number = 1},
                                      {.number = 1},
                                      {.number = 4711}});
}

TEST_CASE("reply parser: a multi_get of no keys has an empty reply", "[store]") {
  ReplyParser parser;
  parser.expect({.op = Op::multi_get});
  std::string_view nothing;
  CHECK(parser.next(nothing) == Reply{});
}

TEST_CASE("reply parser: absurd lengths break the stream before anything is allocated", "[store]") {
  const Op op = GENERATE(Op::get, Op::multi_get);
  ReplyParser parser;
  parser.expect({.op = op, .keys = {"/a"}});
  std::string_view bytes = "\xff\xff\xff\xff\xff\xff\xff\xff";
  CHECK_FALSE(parser.next(bytes).has_value());
  CHECK(parser.broken());
}

}  // namespace replies_parser_test
