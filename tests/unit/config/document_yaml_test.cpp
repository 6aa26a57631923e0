// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "acc/config/document_parsers.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace document_yaml_test {

using acc::launcher::DocumentNode;
using acc::launcher::parse_yaml;
using acc::launcher::Position;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

Value value_of(const std::string& text) {
  return to_value(parse_yaml(text, "c"));
}
std::string error_in(const std::string& text) {
  return error_of([&] { parse_yaml(text, "c"); });
}

}  // namespace

TEST_CASE("document_yaml: scalars keep their text and position", "[config]") {
  const DocumentNode root = parse_yaml("a: NO\nb:\n- '1'\n", "c");
  REQUIRE(root.items.size() == 2);
  const DocumentNode& a = root.items[0];
  CHECK(a.key == "a");
  CHECK(a.value == false);
  CHECK(a.text == "NO");
  CHECK_FALSE(a.quoted);
  CHECK(a.position == Position{1, 4});
  CHECK(a.key_position == Position{1, 1});
  const DocumentNode& one = root.items[1].items.at(0);
  CHECK(one.value == "1");
  CHECK(one.quoted);
  CHECK(one.position == Position{3, 3});
}

TEST_CASE("document_yaml: aliases and merged mappings are resolved", "[config]") {
  CHECK(value_of("a: &x [1, 2]\nb: *x\n") == Value{{"a", {1, 2}}, {"b", {1, 2}}});
  CHECK(value_of("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n").at("b") == Value{{"p", 1}, {"q", 3}});
  CHECK(value_of("a: &x {p: 1}\nb: &y {q: 2}\nc: {<<: [*x, *y]}\n").at("c") == Value{{"p", 1}, {"q", 2}});
}

TEST_CASE("document_yaml: of several merged values of a key PyYAML's counts", "[config]") {
  const std::string bases = "a: &x {pp: 1, qq: 1}\nb: &y {pp: 2, rr: 2}\n";
  const Value last = {{"pp", 2}, {"qq", 1}, {"rr", 2}};
  CHECK(value_of(bases + "c:\n  <<: *x\n  <<: *y\n").at("c") == last);
  CHECK(value_of(bases + "c:\n  <<: *x\n  pp: 3\n  <<: *y\n").at("c").at("pp") == 3);
  CHECK(value_of(bases + "c: {<<: [*y, *x]}\n").at("c") == last);
  CHECK(value_of("a: &x {pp: 1, pp: 2}\nb: {<<: *x}\n").at("b") == Value{{"pp", 2}});
}

TEST_CASE("document_yaml: escapes give whole characters, in keys too", "[config]") {
  CHECK(value_of("\"k\\_\": \"\\N\\_\"\n") == Value{{"k\u00a0", "\u0085\u00a0"}});
  CHECK(value_of("a: \"\u00e0\\_\u00e9\\N\\L\\xe0\"\n") ==
        Value{{"a", "\u00e0\u00a0\u00e9\u0085\u2028\u00e0"}});
  CHECK(value_of("a: [\"My\\_Run\"]\n").at("a").at(0) == "My\u00a0Run");
  const std::string text = "a\u00a0b\u0085c";
  CHECK(value_of(acc::launcher::write_yaml({{"k", text}})) == Value{{"k", text}});
}

TEST_CASE("document_yaml: line breaks at the end of a quoted text are kept", "[config]") {
  CHECK(value_of("a: 'x\n\n  '\nb: 'x\n\n\n\n  '\n") == Value{{"a", "x\n"}, {"b", "x\n\n\n"}});
  CHECK(value_of("a: '\n\n  '\nb: '\n  '\nc: ''\n") == Value{{"a", "\n"}, {"b", " "}, {"c", ""}});
  CHECK(value_of("a: \"x\n  \n\n  \"\nb: \"x\\n\n\n  \"\n") == Value{{"a", "x\n\n"}, {"b", "x\n\n"}});
  CHECK(value_of("a: 'it''s\\\r\n\r\n\r\n  '\r\n") == Value{{"a", "it's\\\n\n"}});
  for (const std::string text : {"\n", "\n\n", "x\n", "x\n\n\n", "x\n\ny\n\n"}) {
    INFO(text);
    CHECK(value_of(acc::launcher::write_yaml({{"k", text}})) == Value{{"k", text}});
  }
}

TEST_CASE("document_yaml: standard tags are applied, others are refused", "[config]") {
  CHECK(value_of("a: !!str 1\nb: !!int 2\nc: !!map {}\n") ==
        Value{{"a", "1"}, {"b", 2}, {"c", Value::object()}});
  CHECK(error_in("a: !!python/object:os.system x\n") ==
        "c:1:4: the tag tag:yaml.org,2002:python/object:os.system is not supported");
}

TEST_CASE("document_yaml: other line endings, document marks and comments are accepted", "[config]") {
  CHECK(value_of("# c\r\n---\r\na: 1\r\nb: [2,\r\n 3]\r\n...\r\n") == Value{{"a", 1}, {"b", {2, 3}}});
  CHECK(parse_yaml("# nothing\n", "c").is_null());
}

TEST_CASE("document_yaml: malformed text is refused with its position", "[config]") {
  CHECK(error_in("a: [1, 2").starts_with("c:1:1: is not valid YAML: "));
  CHECK(error_in("a: \"x").starts_with("c:1:6: is not valid YAML: "));
  CHECK(error_in("a: b: c").starts_with("c:1:5: is not valid YAML: "));
  CHECK(error_in("a: *x").starts_with("c:1:4: is not valid YAML: "));
  CHECK(error_in("a: 1\n---\nb: 2\n") == "c:2:1: contains a second YAML document");
  CHECK(error_in("[a]: 1\n") == "c:1:1: a key must be text, not a list or a mapping");
  CHECK(error_in("a: &x [*x]\n") == "c:1:8: the alias is inside the node that it refers to");
  CHECK(error_in("a: &x b\n*x : 1\n") == "c:2:1: an alias cannot be a key");
}

TEST_CASE("document_yaml: a key without a colon is refused where YAML refuses it", "[config]") {
  CHECK(error_in("a: 1\nmixed_precision") == "c:2:1: 'mixed_precision' has no `: value`");
  CHECK(error_in("a: 1\ns:\n  x: 1\n  y\n") == "c:4:3: 'y' has no `: value`");
  CHECK(error_in("a:\n- b: 1\n  c\n") == "c:3:3: 'c' has no `: value`");
  CHECK(value_of("a: 1\nb:") == Value{{"a", 1}, {"b", nullptr}});
  CHECK(value_of("a: 1\n\"b\" :\r\n") == Value{{"a", 1}, {"b", nullptr}});
  CHECK(value_of("{a: 1, b}") == Value{{"a", 1}, {"b", nullptr}});
  CHECK(value_of("a: 1\n? b\n") == Value{{"a", 1}, {"b", nullptr}});
}

TEST_CASE("document_yaml: quotes that are not closed are refused", "[config]") {
  CHECK(error_in("a: \"node0\n") == "c:1:4: the quotes are not closed");
  CHECK(error_in("a: 'it''s\n\n") == "c:1:4: the quotes are not closed");
  CHECK(error_in("a: \"x\\\"\n") == "c:1:4: the quotes are not closed");
  CHECK(value_of("é: \"x\n  y\"\nb: 'it''s'\nc: |\n  'x\n") ==
        Value{{"é", "x y"}, {"b", "it's"}, {"c", "'x\n"}});
}

TEST_CASE("document_yaml: expansion of aliases is limited", "[config]") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + ", " + last +
            "]\n";
  }
  CHECK(error_in(bomb).ends_with("has too many values"));
}

TEST_CASE("document_yaml: nesting by indentation or dashes is limited", "[config]") {
  std::string dashes;
  std::string indented;
  for (std::size_t i = 0; i < 1000; ++i) {
    dashes += "- ";
    indented += std::string(i, ' ') + "a:\n";
  }
  CHECK(error_in(dashes).ends_with("is nested too deeply"));
  CHECK(error_in(indented).ends_with("is nested too deeply"));
}

}  // namespace document_yaml_test
