// SPDX-License-Identifier: Apache-2.0
#include "acc/store/protocol.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace protocol_test {

namespace {

using acc::launcher::encode;
using acc::launcher::Op;
using acc::launcher::Request;
using acc::launcher::RequestParser;
using namespace std::string_view_literals;

const Request kHello = {.op = Op::validate, .number = acc::launcher::kStoreMagic};

std::vector<Request> all_of(RequestParser& parser, std::string_view bytes) {
  std::vector<Request> requests;
  while (auto request = parser.next(bytes)) requests.push_back(std::move(*request));
  return requests;
}

RequestParser greeted(acc::launcher::RequestLimits limits = {}) {
  RequestParser parser(limits);
  all_of(parser, encode(kHello));
  return parser;
}

std::string length(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::vector<Request> one_of_each() {
  return {
      kHello,
      {.op = Op::set, .keys = {"/k"}, .values = {"v"}},
      {.op = Op::compare_set, .keys = {"/k"}, .values = {"expected", "desired"}},
      {.op = Op::get, .keys = {"/k"}},
      {.op = Op::add, .keys = {"init/"}, .number = -7},
      {.op = Op::check, .keys = {"/a", "/b"}},
      {.op = Op::wait, .keys = {"/a"}},
      {.op = Op::get_num_keys},
      {.op = Op::delete_key, .keys = {"/k"}},
      {.op = Op::append, .keys = {"/k"}, .values = {std::string("\0\xff", 2)}},
      {.op = Op::multi_get, .keys = {}},
      {.op = Op::multi_set, .keys = {"/a", "", "/c"}, .values = {"1", "", "3"}},
      {.op = Op::cancel_wait},
      {.op = Op::ping, .number = 0xFFFFFFFF},
      {.op = Op::queue_push, .keys = {"/q"}, .values = {"v"}},
      {.op = Op::queue_pop, .keys = {"/q"}},
      {.op = Op::queue_len, .keys = {"/q"}},
      {.op = Op::list_keys},
      {.op = Op::barrier, .keys = {"/b"}, .number = 2},
  };
}

}  // namespace

TEST_CASE("protocol: reads what torch 2.11 sends", "[store]") {
  RequestParser parser({});
  const auto requests =
      all_of(parser,
             "\x00\xce\xf7\x85<\r6!\x00\x00"
             "\x04\x05\x00\x00\x00\x00\x00\x00\x00init/\x01\x00\x00\x00\x00\x00\x00\x00"
             "\x01\x02\x00\x00\x00\x00\x00\x00\x00/a\x01\x00\x00\x00\x00\x00\x00\x00"
             "1"
             "\x06\x01\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00/never\x0c"
             "\x0f\x02\x00\x00\x00\x00\x00\x00\x00/q\x11"sv);
  CHECK(requests == std::vector<Request>{kHello,
                                         {.op = Op::ping, .number = 0x2136},
                                         {.op = Op::add, .keys = {"init/"}, .number = 1},
                                         {.op = Op::set, .keys = {"/a"}, .values = {"1"}},
                                         {.op = Op::wait, .keys = {"/never"}},
                                         {.op = Op::cancel_wait},
                                         {.op = Op::queue_pop, .keys = {"/q"}},
                                         {.op = Op::list_keys}});
  CHECK_FALSE(parser.broken());
}

TEST_CASE("protocol: requests are parsed from pieces of any size", "[store]") {
  const std::vector<Request> sent = one_of_each();
  std::string bytes;
  for (const Request& request : sent) bytes += encode(request);
  const std::size_t piece =
      GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{4096});
  RequestParser parser({});
  std::vector<Request> received;
  for (std::size_t i = 0; i < bytes.size(); i += piece) {
    for (Request& request : all_of(parser, std::string_view(bytes).substr(i, piece))) {
      received.push_back(std::move(request));
    }
  }
  CHECK(received == sent);
  CHECK_FALSE(parser.broken());
}

TEST_CASE("protocol: a request is complete at its last byte", "[store]") {
  RequestParser parser = greeted();
  for (const Request& request : one_of_each()) {
    const std::string bytes = encode(request);
    CHECK(all_of(parser, std::string_view(bytes).substr(0, bytes.size() - 1)).empty());
    CHECK(all_of(parser, std::string_view(bytes).substr(bytes.size() - 1)) == std::vector<Request>{request});
  }
}

TEST_CASE("protocol: next() leaves the bytes of later requests", "[store]") {
  RequestParser parser = greeted();
  const std::string bytes = encode({.op = Op::get, .keys = {"/a"}}) + encode({.op = Op::get_num_keys});
  std::string_view rest = bytes;
  CHECK(parser.next(rest) == Request{.op = Op::get, .keys = {"/a"}});
  CHECK(rest.size() == 1);
}

TEST_CASE("protocol: a stream must open with validate and the magic", "[store]") {
  const auto opening = GENERATE("\x00\xce\xf7\x85<"sv, "\x00\xce\xf7\x85="sv, "\x07"sv,
                                "\x0d\x01\x02\x03\x04"sv, "GET / HTTP/1.1\r\n\r\n"sv, "\x16\x03\x01\x02"sv);
  RequestParser parser({});
  const auto requests = all_of(parser, opening);
  const bool right = opening == "\x00\xce\xf7\x85<"sv;
  CHECK(parser.broken() != right);
  CHECK(requests.size() == (right ? 1 : 0));
}

TEST_CASE("protocol: a wrong magic also breaks a stream that opened well", "[store]") {
  RequestParser parser = greeted();
  CHECK(all_of(parser, encode({.op = Op::validate, .number = 1})).empty());
  CHECK(parser.broken());
}

TEST_CASE("protocol: an unknown operation breaks the stream", "[store]") {
  const int op = GENERATE(19, 20, 127, 255);
  RequestParser parser = greeted();
  CHECK(all_of(parser, std::string(1, static_cast<char>(op))).empty());
  CHECK(parser.broken());
}

TEST_CASE("protocol: nothing is parsed from a broken stream", "[store]") {
  RequestParser parser = greeted();
  CHECK(all_of(parser, "\x13" + encode({.op = Op::get_num_keys})).empty());
  CHECK(all_of(parser, encode({.op = Op::get_num_keys})).empty());
}

TEST_CASE("protocol: a length over its limit breaks the stream at once", "[store]") {
  RequestParser parser = greeted({.max_key_bytes = 8, .max_value_bytes = 16, .max_keys = 3});
  SECTION("key") {
    all_of(parser, "\x03" + length(9));
  }
  SECTION("a length that is negative when signed") {
    all_of(parser, "\x03" + length(~std::uint64_t{0}));
  }
  SECTION("value") {
    all_of(parser, "\x01" + length(1) + "k" + length(17));
  }
  SECTION("second value") {
    all_of(parser, "\x02" + length(1) + "k" + length(1) + "v" + length(std::uint64_t{1} << 63U));
  }
  SECTION("number of keys") {
    all_of(parser, "\x06" + length(4));
  }
  SECTION("number of pairs") {
    all_of(parser, "\x0b" + length(~std::uint64_t{0}));
  }
  CHECK(parser.broken());
}

TEST_CASE("protocol: a length at its limit is accepted", "[store]") {
  RequestParser parser =
      greeted({.max_key_bytes = 8, .max_value_bytes = 16, .max_keys = 3, .max_request_bytes = 3 * (8 + 16)});
  const std::string key(8, 'k');
  const std::string value(16, 'v');
  const Request request = {.op = Op::multi_set, .keys = {key, key, key}, .values = {value, value, value}};
  CHECK(all_of(parser, encode(request)) == std::vector<Request>{request});
}

TEST_CASE("protocol: one request's keys and values together have a limit", "[store]") {
  RequestParser parser = greeted({.max_request_bytes = 10});
  SECTION("within it, again and again") {
    for (int i = 0; i < 3; ++i) {
      CHECK(all_of(parser, encode({.op = Op::check, .keys = {"12345", "67890"}})).size() == 1);
    }
    CHECK_FALSE(parser.broken());
  }
  SECTION("over it") {
    CHECK(all_of(parser, encode({.op = Op::check, .keys = {"12345", "67890", "x"}})).empty());
    CHECK(parser.broken());
  }
}

}  // namespace protocol_test
