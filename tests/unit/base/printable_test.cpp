// SPDX-License-Identifier: Apache-2.0
#include "acc/base/printable.hpp"

#include "support/catch.hpp"

namespace printable_test {

using acc::printable;

TEST_CASE("printable: what reorders a line or hides in it is visible", "[base]") {
  CHECK(printable("a\u202egnp.exe") == "a\\xe2\\x80\\xaegnp.exe");
  for (const char* text :
       {"\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u202a", "\u2066", "\u2069", "\ufeff"})
    CHECK(printable(text).starts_with("\\x"));
  // Letters of Arabic and Hebrew, and the joiners that scripts and emojis need.
  for (const char* text : {"\u05d0\u0628", "\u200c\u200d", "1\u202f000"}) CHECK(printable(text) == text);
}

TEST_CASE("printable: text is shown as it is", "[base]") {
  for (const char* text : {"", "two\n\tlines", "é € 𝄞"}) CHECK(printable(text) == text);
}

TEST_CASE("printable: what would steer the terminal is written as a number", "[base]") {
  CHECK(printable("\x1b[2Jgone\r\x7f\b") == "\\x1b[2Jgone\\x0d\\x7f\\x08");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\xc2\\x9b2J");
}

TEST_CASE("printable: so are bytes that are not UTF-8", "[base]") {
  CHECK(printable("a\xff\xe2\x82") == "a\\xff\\xe2\\x82");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("printable_line: newlines and tabs are written, too", "[base]") {
  CHECK(acc::printable_line("a\nb\t\x1b\xc3\xa9") == "a\\x0ab\\x09\\x1b\xc3\xa9");
}

TEST_CASE("shown_line: a line as a terminal shows it, without colors", "[base]") {
  using acc::shown_line;
  CHECK(shown_line("plain\ttext \xc3\xa9") == "plain\ttext \xc3\xa9");
  CHECK(shown_line("\x1b[1;31mError\x1b[0m: \x1b[2K\x1b[Hno") == "Error: no");
  CHECK(shown_line("\x1b]0;title\a\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\ \x1b"
                   "7end") == "link end");
  CHECK(shown_line(" 10%\r 20%\r") == " 20%");
  CHECK(shown_line("\b\x1b[3") == "\\x08");
  CHECK(shown_line("\x1b").empty());
}

}  // namespace printable_test
