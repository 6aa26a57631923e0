// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"

#include "support/catch.hpp"

namespace text_test {

using Words = std::vector<std::string>;

TEST_CASE("text: trim removes whitespace at both ends only", "[base]") {
  CHECK(acc::trim(" \t a b \n") == "a b");
  CHECK(acc::trim(" \n").empty());
}

TEST_CASE("text: split keeps empty parts, join is its inverse", "[base]") {
  CHECK(acc::split("a,,b,", ',') == Words{"a", "", "b", ""});
  CHECK(acc::split("", ',') == Words{""});
  CHECK(acc::join(acc::split("a,,b,", ','), ",") == "a,,b,");
}

TEST_CASE("text: words are separated by any whitespace", "[base]") {
  CHECK(acc::split_words(" ssh  -p\t22\n") == Words{"ssh", "-p", "22"});
  CHECK(acc::split_words(" \t").empty());
}

TEST_CASE("text: a count has its noun, a time its unit", "[base]") {
  using namespace std::chrono_literals;
  CHECK(acc::pluralize(1, "node") == "1 node");
  CHECK(acc::pluralize(0, "node") == "0 nodes");
  CHECK(acc::pluralize(2, "process") == "2 processes");
  CHECK(acc::seconds_text(60s) == "60 s");
  CHECK(acc::to_milliseconds(0.5) == 500ms);
  CHECK(acc::to_milliseconds(0.0004) == 1ms);
  CHECK(acc::to_milliseconds(0) == 0ms);
  CHECK(acc::to_milliseconds(16.1) == 16100ms);
  CHECK(acc::seconds_text(500ms) == "0.5 s");
  CHECK(acc::seconds_text(1234ms) == "1.234 s");
  CHECK(acc::rounded_seconds_text(1234ms) == "1.23 s");
  CHECK(acc::seconds_text(12h * 24 * 30) == "31104000 s");
  CHECK(acc::rounded_seconds_text(60s) == "60 s");
  CHECK(acc::rounded_seconds_text(999.4s) == "999 s");
  CHECK(acc::rounded_seconds_text(30min) == "1800 s");
}

TEST_CASE("text: ranks are named, three neighbours or more as a range, of many parts the first sixteen",
          "[base]") {
  CHECK(acc::name_ranks({3}) == "rank 3");
  CHECK(acc::name_ranks({0, 2, 3}) == "ranks 0, 2, 3");
  CHECK(acc::name_ranks({0, 1, 2, 3, 5, 7, 8, 9}) == "ranks 0-3, 5, 7-9");
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  CHECK(acc::number_ranges(odd) == "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 and 34 more");
}

TEST_CASE("text: a shell reads a quoted text as the same word", "[base]") {
  CHECK(acc::shell_word("--lr=0.1") == "--lr=0.1");
  CHECK(acc::shell_word("") == "''");
  CHECK(acc::shell_word("a b") == "'a b'");
  CHECK(acc::shell_word("$HOME") == "'$HOME'");
  CHECK(acc::in_quotes("plain") == "'plain'");
  CHECK(acc::in_quotes("it's") == R"('it'\''s')");
}

TEST_CASE("text: numbers are parsed as whole words", "[base]") {
  CHECK(acc::parse_integer(" +12 ") == 12);
  CHECK(acc::parse_integer("-3") == -3);
  CHECK(acc::parse_python_integer(" 1_000 ") == 1000);
  CHECK_FALSE(acc::parse_integer("1_0").has_value());
  CHECK_FALSE(acc::parse_python_integer("1__0").has_value());
  CHECK_FALSE(acc::parse_python_integer("_1").has_value());
  CHECK_FALSE(acc::parse_python_integer("1_").has_value());
  CHECK_FALSE(acc::parse_integer("1.0").has_value());
  CHECK_FALSE(acc::parse_integer("12x").has_value());
  CHECK_FALSE(acc::parse_integer("").has_value());
  CHECK_FALSE(acc::parse_integer("99999999999999999999").has_value());
  CHECK(acc::parse_number("0.5") == 0.5);
  CHECK(acc::parse_number("1e3") == 1000.0);
  CHECK_FALSE(acc::parse_number("nan").has_value());
  CHECK_FALSE(acc::parse_number("inf").has_value());
}

TEST_CASE("text: accelerate's truth words in any case, and no others", "[base]") {
  for (const auto* yes : {"y", "YES", "t", "True", "on", "1"}) CHECK(acc::parse_truth(yes) == true);
  for (const auto* no : {"n", "No", "f", "FALSE", "off", "0"}) CHECK(acc::parse_truth(no) == false);
  CHECK_FALSE(acc::parse_truth("maybe").has_value());
  CHECK_FALSE(acc::parse_truth("").has_value());
}

TEST_CASE("text: a near word is suggested, a distant one is not", "[base]") {
  const Words keys = {"num_machines", "num_processes", "mixed_precision"};
  CHECK(acc::nearest("num_proceses", keys) == "num_processes");
  CHECK(acc::nearest("mixed_precsiion", keys) == "mixed_precision");
  CHECK_FALSE(acc::nearest("zzz", keys).has_value());
  CHECK(acc::did_you_mean("NUM_MACHINE", keys) == "did you mean 'num_machines'?");
  CHECK(acc::did_you_mean("zzz", keys).empty());
}

TEST_CASE("text: any bytes become characters, and come back", "[base]") {
  const std::string bytes = GENERATE("", "plain", "\xc3\xbc", "\xff\x80\xc3");
  CHECK(acc::to_bytes(acc::to_characters(bytes)) == bytes);
}

TEST_CASE("text: a long text is shortened between characters", "[base]") {
  CHECK(acc::shorten("abc", 3) == "abc");
  CHECK(acc::shorten("abcd", 3) == "abc...");
  CHECK(acc::shorten("ab\xc3\xa9x", 3) == "ab...");
}

}  // namespace text_test
