// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"
#include "support/catch.hpp"

namespace text_wrap_test {

using acc::cut_characters;
using acc::wrap;

TEST_CASE("wrap: lines break at blanks and begin with the indent", "[base]") {
  CHECK(wrap("one two three", 0, 7) == "one two\nthree");
  CHECK(wrap("one two three", 0, 6) == "one\ntwo\nthree");
  CHECK(wrap("one two three", 2, 9) == "one two\n  three");
  CHECK(wrap("", 0, 7).empty());
}

TEST_CASE("wrap: a word longer than the line stands alone", "[base]") {
  CHECK(wrap("a incomprehensible b", 0, 5) == "a\nincomprehensible\nb");
}

TEST_CASE("wrap: characters count, not bytes", "[base]") {
  CHECK(acc::count_characters("\xc3\xa9t\xc3\xa9") == 3);
  CHECK(wrap("\xc3\xa9\xc3\xa9 bc", 0, 5) == "\xc3\xa9\xc3\xa9 bc");
}

TEST_CASE("wrap: a help entry has its text beside the name, or below if there is no room", "[base]") {
  CHECK(acc::help_entry("name", "what it is", 80) == "  name" + std::string(24, ' ') + "what it is\n");
  CHECK(acc::help_entry("name", "what it is", 69) == "  name\n      what it is\n");
  const std::string below = "\n" + std::string(30, ' ');
  const std::string name(27, 'n');
  CHECK(acc::help_entry(name, "what", 80) == "  " + name + below + "what\n");
  CHECK(acc::help_entry("name", std::string(45, 'a') + " it is", 80) ==
        "  name" + std::string(24, ' ') + std::string(45, 'a') + " it" + below + "is\n");
}

TEST_CASE("wrap: a truncated text ends with an ellipsis after a whole character", "[base]") {
  CHECK(cut_characters("abc", 3) == "abc");
  CHECK(cut_characters("abcd", 3) == "ab\u2026");
  CHECK(cut_characters("\xc3\xa9\xc3\xa9\xc3\xa9", 2) == "\xc3\xa9\u2026");
  CHECK(cut_characters("abc", 0).empty());
}

}  // namespace text_wrap_test
