// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace text_byte_size_test {

using acc::parse_byte_size;

TEST_CASE("byte size: units are decimal", "[base]") {
  CHECK(parse_byte_size("5GB", "x") == 5'000'000'000);
  CHECK(parse_byte_size("1.5 mb", "x") == 1'500'000);
  CHECK(parse_byte_size("2TB", "x") == 2'000'000'000'000);
  CHECK(parse_byte_size("7kb", "x") == 7'000);
}

TEST_CASE("byte size: units with an i are binary", "[base]") {
  CHECK(parse_byte_size("8GiB", "x") == 8'589'934'592);
  CHECK(parse_byte_size("1.5 mib", "x") == 1'572'864);
}

TEST_CASE("byte size: an invalid size is an error with an example", "[base]") {
  const std::string text = GENERATE("5", "GB", "-1GB", "0MB", "ten GB", "");
  CHECK(acc::test::error_of([&] { parse_byte_size(text, "--max_shard_size"); }) ==
        "--max_shard_size: '" + text + "' is not a size (as in 5GB or 200MB)");
}

}  // namespace text_byte_size_test
