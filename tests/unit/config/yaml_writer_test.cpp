// SPDX-License-Identifier: Apache-2.0
#include "acc/config/value.hpp"
#include "support/catch.hpp"

namespace yaml_writer_test {

using acc::launcher::Value;
using acc::launcher::write_yaml;

TEST_CASE("yaml_writer: keys are sorted, lists are at the indentation of their key", "[config]") {
  const Value value = {{"b", {"x", "y"}}, {"a", {{"z", {1, true}}, {"y", nullptr}}}, {"c", Value::array()}};
  CHECK(write_yaml(value) == "a:\n  y: null\n  z:\n  - 1\n  - true\nb:\n- x\n- y\nc: []\n");
}

TEST_CASE("yaml_writer: lists in lists and mappings in lists stay on the line of their dash", "[config]") {
  CHECK(write_yaml(Value{
            {"a", Value::array({Value{{"p", 1}, {"q", {2}}}, Value::array({1, Value::array({2})})})}}) ==
        "a:\n- p: 1\n  q:\n  - 2\n- - 1\n  - - 2\n");
  CHECK(write_yaml(Value::object()) == "{}\n");
}

TEST_CASE("yaml_writer: text is quoted only where it would be misread", "[config]") {
  const auto written = [](const std::string& text) {
    const std::string line = write_yaml(Value{{"k", text}});
    return line.substr(3, line.size() - 4);
  };
  CHECK(written("all") == "all");
  CHECK(written("a b") == "a b");
  CHECK(written("0,1") == "0,1");
  CHECK(written("no") == "'no'");
  CHECK(written("NO") == "'NO'");
  CHECK(written("0") == "'0'");
  CHECK(written("") == "''");
  CHECK(written("a: b") == "'a: b'");
  CHECK(written("a:b") == "a:b");
  CHECK(written("x #y") == "'x #y'");
  CHECK(written("- a") == "'- a'");
  CHECK(written("-a") == "-a");
  CHECK(written("*") == "'*'");
  CHECK(written("it's: so") == "'it''s: so'");
  CHECK(written(" a") == "' a'");
  CHECK(written("a\nb") == "'a\n\n  b'");
  CHECK(written("a \nb") == "\"a \\nb\"");
  CHECK(written("\ta\"\\") == "\"\\ta\\\"\\\\\"");
  CHECK(written("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\\xE9\\u20AC\\U0001F600\"");
  CHECK(written("---") == "'---'");
  CHECK(written("2026-01-31") == "'2026-01-31'");
}

TEST_CASE("yaml_writer: numbers are written as Python writes them", "[config]") {
  CHECK(write_yaml(Value{{"a", 1e-5}, {"b", 1.0}, {"c", 1e16}, {"d", 0.1}, {"e", 1e15}, {"f", -3}}) ==
        "a: 1.0e-05\nb: 1.0\nc: 1.0e+16\nd: 0.1\ne: 1000000000000000.0\nf: -3\n");
}

TEST_CASE("yaml_writer: long lines are folded", "[config]") {
  const std::string word(30, 'w');
  const std::string plain = word + " " + word + " " + word + " end";
  CHECK(write_yaml(Value{{"k", plain}}) == "k: " + word + " " + word + " " + word + "\n  end\n");
  CHECK(write_yaml(Value{{"k", "#" + plain}}) == "k: '#" + word + " " + word + " " + word + "\n  end'\n");
  CHECK(write_yaml(Value{{"k", "\t" + plain}}) ==
        "k: \"\\t" + word + " " + word + " " + word + "\\\n  \\ end\"\n");
}

}  // namespace yaml_writer_test
