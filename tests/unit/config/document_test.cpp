// SPDX-License-Identifier: Apache-2.0
#include "acc/config/document.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace document_test {

using acc::launcher::DocumentLimits;
using acc::launcher::parse_document;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

std::string error_in(const std::string& text, const std::string& file = "c.yaml") {
  return error_of([&] { parse_document(text, file); });
}

}  // namespace

TEST_CASE("document: the file's name decides the format", "[config]") {
  CHECK(to_value(parse_document("a: 1", "c.yaml")) == Value{{"a", 1}});
  CHECK(to_value(parse_document("a: 1", "c")) == Value{{"a", 1}});
  CHECK(to_value(parse_document(R"({"a": 1})", "c.json")) == Value{{"a", 1}});
  CHECK(to_value(parse_document(R"({"a": 1})", "c.yaml")) == Value{{"a", 1}});
  CHECK(error_in("a: 1", "c.json") == "c.json:1:1: is not valid JSON: invalid literal");
}

TEST_CASE("document: a byte order mark is not part of the text", "[config]") {
  CHECK(to_value(parse_document("\xef\xbb\xbf"
                                "a: 1",
                                "c.yaml")) == Value{{"a", 1}});
}

TEST_CASE("document: text that is not UTF-8 is refused with its position", "[config]") {
  const std::string hint = " (is it a config file?)";
  CHECK(error_in("a: 1\nb: \xe9\n") == "c.yaml:2:4: is not UTF-8 text" + hint);
  CHECK(error_in("\xff\xfe"
                 "a") == "c.yaml:1:1: is not UTF-8 text" + hint);
  CHECK(error_in("\xc0\x80") == "c.yaml:1:1: is not UTF-8 text" + hint);          // overlong
  CHECK(error_in("\xed\xa0\x80") == "c.yaml:1:1: is not UTF-8 text" + hint);      // a surrogate
  CHECK(error_in("\xf4\x90\x80\x80") == "c.yaml:1:1: is not UTF-8 text" + hint);  // beyond U+10FFFF
  CHECK(error_in("a: \xe2\x82") == "c.yaml:1:4: is not UTF-8 text" + hint);       // cut off
  CHECK(error_in(std::string("a: \0", 4)) == "c.yaml:1:4: contains the control character 0x00" + hint);
  CHECK(error_in("a: '\xe2\x82\xac\xf0\x9f\x98\x80'") == "no error");
}

TEST_CASE("document: a text beyond the limits is refused before it is read", "[config]") {
  CHECK(error_in(std::string(DocumentLimits::kBytes + 1, 'a')) ==
        "c.yaml:1:1: is too large for a config file");
  CHECK(error_in(std::string(DocumentLimits::kBytes, '[')) == "c.yaml:1:65: is nested too deeply");
  CHECK(error_in(std::string(DocumentLimits::kBytes, '['), "c.json") == "c.json:1:65: is nested too deeply");
}

TEST_CASE("document: the last of equal keys wins", "[config]") {
  CHECK(to_value(parse_document("a: 1\na: 2", "c.yaml")) == Value{{"a", 2}});
}

}  // namespace document_test
