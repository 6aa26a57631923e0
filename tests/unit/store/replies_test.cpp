// SPDX-License-Identifier: Apache-2.0
#include "acc/store/replies.hpp"

#include <memory>
#include <string>

#include "support/catch.hpp"

namespace replies_test {

namespace {

using acc::launcher::Replies;
using namespace std::string_literals;

std::string text_of(const Replies& replies) {
  std::string text;
  for (const std::string_view piece : replies.front(1000)) text += piece;
  return text;
}

std::shared_ptr<const std::string> value_of(std::size_t size, char letter) {
  return std::make_shared<const std::string>(size, letter);
}

}  // namespace

TEST_CASE("replies: encodes as TCPStore does", "[store]") {
  Replies replies;
  replies.add_byte(1);
  replies.add_u32(0x2136);
  replies.add_i64(-2);
  replies.add_text("/a");
  replies.add_value(nullptr);
  CHECK(text_of(replies) ==
        "\x01\x36\x21\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00/a"
        "\x00\x00\x00\x00\x00\x00\x00\x00"s);
  CHECK(replies.size() == 31);
}

TEST_CASE("replies: can be sent in pieces of any size", "[store]") {
  Replies replies;
  replies.add_value(value_of(3, 'a'));
  replies.add_value(value_of(1000, 'b'));
  replies.add_value(value_of(2000, 'c'));
  replies.add_byte('d');
  const std::string expected = text_of(replies);
  const std::size_t step = GENERATE(std::size_t{1}, std::size_t{11}, std::size_t{1000}, std::size_t{1019});
  std::string received;
  while (!replies.empty()) {
    const std::size_t size = std::min(step, replies.size());
    received += text_of(replies).substr(0, size);
    replies.sent(size);
  }
  CHECK(received == expected);
  CHECK(replies.front(16).empty());
}

TEST_CASE("replies: can be reused after everything was sent", "[store]") {
  Replies replies;
  replies.add_text("first");
  replies.sent(replies.size());
  CHECK(replies.cost() == 0);
  replies.add_byte('x');
  CHECK(text_of(replies) == "x");
}

TEST_CASE("replies: a long value is shared, and released when it is sent", "[store]") {
  Replies replies;
  const auto value = value_of(1U << 20U, 'v');
  for (int i = 0; i < 100; ++i) replies.add_value(value);
  CHECK(value.use_count() == 101);
  CHECK(replies.size() == 100 * (8 + (1U << 20U)));
  CHECK(replies.cost() < 100 * 300);
  replies.sent(8 + value->size());
  CHECK(value.use_count() == 100);
  replies.clear();
  CHECK(value.use_count() == 1);
  CHECK(replies.empty());
}

TEST_CASE("replies: cost counts what is copied", "[store]") {
  Replies replies;
  for (int i = 0; i < 100; ++i) replies.add_text(std::string(1000, 'k'));
  CHECK(replies.cost() >= 100 * 1000);
}

}  // namespace replies_test
