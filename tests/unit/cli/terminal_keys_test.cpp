// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_keys.hpp"

#include <vector>

#include "support/catch.hpp"

namespace terminal_keys_test {

using acc::launcher::Key;
using acc::launcher::KeyPress;

namespace {

std::vector<KeyPress> keys_of(const std::string& bytes) {
  std::size_t next = 0;
  const acc::launcher::ByteSource source{
      [&] { return next < bytes.size() ? std::optional(bytes[next++]) : std::nullopt; },
      [&] { return next < bytes.size(); }};
  std::vector<KeyPress> keys;
  while (const auto press = read_key(source)) keys.push_back(*press);
  return keys;
}

Key only_key_of(const std::string& bytes) {
  const std::vector<KeyPress> keys = keys_of(bytes);
  REQUIRE(keys.size() == 1);
  return keys[0].key;
}

}  // namespace

TEST_CASE("terminal_keys: arrows, Home and End of all usual terminals", "[cli]") {
  for (const char* bytes : {"\x1b[A", "\x1bOA"}) CHECK(only_key_of(bytes) == Key::up);
  for (const char* bytes : {"\x1b[B", "\x1bOB"}) CHECK(only_key_of(bytes) == Key::down);
  for (const char* bytes : {"\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"}) CHECK(only_key_of(bytes) == Key::home);
  for (const char* bytes : {"\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"}) CHECK(only_key_of(bytes) == Key::end);
  CHECK(only_key_of("\x1b[5~") == Key::page_up);
  CHECK(only_key_of("\x1b[6~") == Key::page_down);
}

TEST_CASE("terminal_keys: control keys", "[cli]") {
  CHECK(only_key_of("\r") == Key::enter);
  CHECK(only_key_of("\n") == Key::enter);
  CHECK(only_key_of("\x03") == Key::interrupt);
  CHECK(only_key_of("\x04") == Key::end_of_file);
  CHECK(only_key_of("\x7f") == Key::backspace);
  CHECK(only_key_of("\x15") == Key::erase_line);
  CHECK(only_key_of("\x17") == Key::erase_word);
  CHECK(only_key_of("\x01") == Key::unknown);
}

TEST_CASE("terminal_keys: other sequences are one unknown key", "[cli]") {
  CHECK(only_key_of("\x1b") == Key::escape);
  CHECK(only_key_of("\x1b[D") == Key::left);
  CHECK(keys_of("\x1b[3~x") == std::vector<KeyPress>{{Key::unknown, ""}, {Key::text, "x"}});
  CHECK(keys_of("\x1b[1;5Ax") == std::vector<KeyPress>{{Key::unknown, ""}, {Key::text, "x"}});
}

TEST_CASE("terminal_keys: a character may have several bytes", "[cli]") {
  CHECK(keys_of("a\xc3\xa9\xe2\x82\xac") ==
        std::vector<KeyPress>{{Key::text, "a"}, {Key::text, "\xc3\xa9"}, {Key::text, "\xe2\x82\xac"}});
  CHECK(keys_of("\xc3").empty());
}

}  // namespace terminal_keys_test
