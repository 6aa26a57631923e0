// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "acc/config/value.hpp"
#include "support/catch.hpp"

namespace yaml_scalar_test {

using acc::launcher::needs_quotes;
using acc::launcher::read_plain_scalar;
using acc::launcher::Value;

TEST_CASE("yaml_scalar: truth values and nulls are YAML 1.1's", "[config]") {
  for (const char* text : {"yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"})
    CHECK(read_plain_scalar(text) == true);
  for (const char* text : {"no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"})
    CHECK(read_plain_scalar(text) == false);
  for (const char* text : {"", "~", "null", "Null", "NULL"}) CHECK(read_plain_scalar(text).is_null());
  for (const char* text : {"y", "n", "yEs", "nO", "none", "None"}) CHECK(read_plain_scalar(text).is_string());
}

TEST_CASE("yaml_scalar: whole numbers in all their forms", "[config]") {
  CHECK(read_plain_scalar("29500") == 29500);
  CHECK(read_plain_scalar("-7") == -7);
  CHECK(read_plain_scalar("+1_000") == 1000);
  CHECK(read_plain_scalar("0x1F") == 31);
  CHECK(read_plain_scalar("0b101") == 5);
  CHECK(read_plain_scalar("017") == 15);
  CHECK(read_plain_scalar("1:30") == 90);
  CHECK(read_plain_scalar("-190:20:30") == -685230);
  CHECK(read_plain_scalar("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"08", "0o17", "0x", "1:60", "1:_6", "--1", "_1", "1-2"})
    CHECK(read_plain_scalar(text).is_string());
}

TEST_CASE("yaml_scalar: fractions need a point and exponents a sign", "[config]") {
  CHECK(read_plain_scalar("1.5") == 1.5);
  CHECK(read_plain_scalar("-1.") == -1.0);
  CHECK(read_plain_scalar(".5") == 0.5);
  CHECK(read_plain_scalar("1.0e-05") == 1e-5);
  CHECK(read_plain_scalar("1:30.5") == 90.5);
  CHECK(read_plain_scalar("-.inf") == -std::numeric_limits<double>::infinity());
  CHECK(read_plain_scalar(".nan").is_number_float());
  for (const char* text : {"1e5", "1.5e5", "-.5", ".", "1.2.3", "-.nan"})
    CHECK(read_plain_scalar(text).is_string());
}

TEST_CASE("yaml_scalar: a number beyond 64 bits is still a number", "[config]") {
  CHECK(read_plain_scalar("99999999999999999999").is_number_float());
}

TEST_CASE("yaml_scalar: quotes are needed where the plain text would be read as something else", "[config]") {
  for (const char* text : {"no", "0", "1.5", "", "~", "2026-01-31", "2026-1-3 04:05:06", "=", "<<"})
    CHECK(needs_quotes(text));
  for (const char* text : {"all", "0,1", "MULTI_GPU", "10.0.0.1", "1e5", "2026", "v1.2"}) {
    INFO(text);
    CHECK(needs_quotes(text) == (std::string(text) == "2026"));
  }
}

}  // namespace yaml_scalar_test
