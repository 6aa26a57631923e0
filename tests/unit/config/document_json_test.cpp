// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "acc/config/document_parsers.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace document_json_test {

using acc::launcher::DocumentNode;
using acc::launcher::parse_json;
using acc::launcher::Position;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

std::string error_in(const std::string& text) {
  return error_of([&] { parse_json(text, "c"); });
}

}  // namespace

TEST_CASE("document_json: values, their positions and those of their keys", "[config]") {
  const DocumentNode root = parse_json(R"({
  "a": true, "b\"": "x\\",
  "c": [ 1, -2.5e3 ],
  "d": {"e": null}
})",
                                       "c");
  REQUIRE(root.items.size() == 4);
  CHECK(root.items[0].key_position == Position{2, 3});
  CHECK(root.items[0].position == Position{2, 8});
  CHECK(root.items[0].value == true);
  CHECK(root.items[1].key == "b\"");
  CHECK(root.items[1].key_position == Position{2, 14});
  CHECK(root.items[1].position == Position{2, 21});
  CHECK(root.items[1].value == "x\\");
  CHECK(root.items[1].quoted);
  CHECK(root.items[2].position == Position{3, 8});
  CHECK(root.items[2].items.at(0).position == Position{3, 10});
  CHECK(root.items[2].items.at(1).position == Position{3, 13});
  CHECK(root.items[2].items.at(1).value == -2500.0);
  CHECK(root.items[3].items.at(0).is_null());
}

TEST_CASE("document_json: escapes become characters", "[config]") {
  CHECK(to_value(parse_json(R"(["\ud83d\ude00\/\u00e9"])", "c")) ==
        Value::array({"\xf0\x9f\x98\x80/\xc3\xa9"}));
}

TEST_CASE("document_json: what is not well formed is refused at its position", "[config]") {
  CHECK(error_in("{\"a\": 1,\n \"b\": nope}") == "c:2:8: is not valid JSON: invalid literal");
  CHECK(error_in("{\"a\": [1,") == "c:1:9: ends in the middle of its JSON text");
  CHECK(error_in("{\"a\": \"x") == "c:1:8: ends in the middle of its JSON text");
  CHECK(error_in("{\"a\": 1} x").starts_with("c:1:10: is not valid JSON: "));
  CHECK(error_in("{\"a\": NaN}").starts_with("c:1:7: is not valid JSON: "));
}

TEST_CASE("document_json: an empty text is a null", "[config]") {
  CHECK(parse_json(" \n", "c").is_null());
}

}  // namespace document_json_test
