// SPDX-License-Identifier: Apache-2.0
#include "acc/store/key_value.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "support/catch.hpp"

namespace key_value_test {

namespace {

using acc::launcher::KeyValue;

std::string at(const KeyValue& data, std::string_view key) {
  const auto value = data.get(key);
  return value ? *value : "(missing)";
}

}  // namespace

TEST_CASE("key_value: keeps the last value of a key", "[store]") {
  KeyValue data;
  data.set("k", "1");
  data.set("k", "2");
  CHECK(at(data, "k") == "2");
  CHECK(data.get("other") == nullptr);
  CHECK(data.size() == 1);
}

TEST_CASE("key_value: an empty value is a value", "[store]") {
  KeyValue data;
  data.set("k", "");
  CHECK(data.exists("k"));
  CHECK(at(data, "k") == "");
}

TEST_CASE("key_value: erase returns whether there was a key", "[store]") {
  KeyValue data;
  data.set("k", "1");
  CHECK(data.erase("k"));
  CHECK_FALSE(data.erase("k"));
  CHECK_FALSE(data.exists("k"));
}

TEST_CASE("key_value: counters are decimal text", "[store]") {
  KeyValue data;
  CHECK(data.add("n", 5) == 5);
  CHECK(data.add("n", -7) == -2);
  CHECK(at(data, "n") == "-2");
  CHECK(data.number("n") == -2);
  CHECK(data.number("missing") == std::nullopt);
}

TEST_CASE("key_value: a counter is read as stoll reads it", "[store]") {
  struct Case {
    std::string text;
    std::optional<std::int64_t> sum;
  };
  const auto c = GENERATE(Case{"41", 42}, Case{" \t\n41", 42}, Case{"+41", 42}, Case{"-1", 0},
                          Case{"41 apples", 42}, Case{"41.9", 42}, Case{"0x10", 1}, Case{"", std::nullopt},
                          Case{"   ", std::nullopt}, Case{"x41", std::nullopt}, Case{"+-1", std::nullopt},
                          Case{"--1", std::nullopt}, Case{"9223372036854775808", std::nullopt});
  KeyValue data;
  data.set("n", c.text);
  CHECK(data.add("n", 1) == c.sum);
  CHECK(at(data, "n") == (c.sum ? std::to_string(*c.sum) : c.text));
}

TEST_CASE("key_value: a sum past 64 bits wraps", "[store]") {
  KeyValue data;
  data.add("n", std::numeric_limits<std::int64_t>::max());
  CHECK(data.add("n", 1) == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("key_value: compare_set stores when the key holds what is expected", "[store]") {
  KeyValue data;
  data.set("k", "1");
  const auto result = data.compare_set("k", "1", "2");
  CHECK(result.stored);
  CHECK(*result.now == "2");
  CHECK(at(data, "k") == "2");
}

TEST_CASE("key_value: compare_set creates a missing key when nothing is expected", "[store]") {
  KeyValue data;
  const auto result = data.compare_set("k", "", "1");
  CHECK(result.stored);
  CHECK(*result.now == "1");
  CHECK(at(data, "k") == "1");
}

TEST_CASE("key_value: compare_set returns the current value otherwise", "[store]") {
  KeyValue data;
  data.set("k", "1");
  const auto result = data.compare_set("k", GENERATE("", "x"), "2");
  CHECK_FALSE(result.stored);
  CHECK(*result.now == "1");
  CHECK(at(data, "k") == "1");
}

TEST_CASE("key_value: compare_set on a missing key returns what was expected and stores nothing", "[store]") {
  KeyValue data;
  const auto result = data.compare_set("k", "x", "2");
  CHECK_FALSE(result.stored);
  CHECK(*result.now == "x");
  CHECK(data.size() == 0);
}

TEST_CASE("key_value: append creates the key, then extends it", "[store]") {
  KeyValue data;
  data.append("k", "ab");
  data.append("k", "cd");
  CHECK(at(data, "k") == "abcd");
}

TEST_CASE("key_value: a value that a reader holds never changes", "[store]") {
  KeyValue data;
  data.set("k", "1");
  const auto held = data.get("k");
  SECTION("append") {
    data.append("k", "2");
  }
  SECTION("set") {
    data.set("k", "2");
  }
  SECTION("add") {
    data.add("k", 1);
  }
  SECTION("erase") {
    data.erase("k");
  }
  CHECK(*held == "1");
  CHECK(at(data, "k") != "1");
}

TEST_CASE("key_value: keys are listed in order, queues are not", "[store]") {
  KeyValue data;
  for (const char* key : {"b", "a", "init/"}) data.set(key, "");
  data.push("q", "1");
  using Keys = std::vector<std::string_view>;
  CHECK(data.keys_after({}, 9) == Keys{"a", "b", "init/"});
  CHECK(data.keys_after({}, 2) == Keys{"a", "b"});
  CHECK(data.keys_after("a", 9) == Keys{"b", "init/"});
  CHECK(data.keys_after("az", 9) == Keys{"b", "init/"});
  CHECK(data.keys_after("init/", 9).empty());
}

TEST_CASE("key_value: a queue pops the oldest value first", "[store]") {
  KeyValue data;
  data.push("q", "1");
  data.push("q", "2");
  CHECK(data.queue_length("q") == 2);
  CHECK(*data.pop("q") == "1");
  CHECK(*data.pop("q") == "2");
  CHECK(data.pop("q") == nullptr);
  CHECK(data.queue_length("q") == 0);
}

TEST_CASE("key_value: a key and a queue may have the same name", "[store]") {
  KeyValue data;
  data.push("x", "queued");
  data.set("x", "set");
  CHECK(data.size() == 1);
  CHECK(at(data, "x") == "set");
  CHECK(data.erase("x"));
  CHECK_FALSE(data.erase("x"));
  CHECK(*data.pop("x") == "queued");
}

TEST_CASE("key_value: a queue exists while it is not empty", "[store]") {
  KeyValue data;
  CHECK_FALSE(data.exists("q"));
  data.push("q", "");
  CHECK(data.exists("q"));
  data.pop("q");
  CHECK_FALSE(data.exists("q"));
}

TEST_CASE("key_value: forget_except keeps what is selected", "[store]") {
  KeyValue data;
  data.set("/none/torchelastic/a", "1");
  data.set("/default_pg/a", "2");
  data.push("/queue", "3");
  data.forget_except([](std::string_view key) { return key.starts_with("/none/"); });
  CHECK(data.get("/none/torchelastic/a"));
  CHECK_FALSE(data.get("/default_pg/a"));
  CHECK(data.queue_length("/queue") == 0);
}

}  // namespace key_value_test
