// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/streams.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_stream_map;
using acc::launcher::Streams;

TEST_CASE("streams: one digit speaks for all ranks", "[plan]") {
  CHECK(parse_stream_map("3", "").of(7) == Streams::both);
  CHECK(parse_stream_map("0", "").of(0) == Streams::none);
}

TEST_CASE("streams: a map speaks for the ranks it names, of any number of digits", "[plan]") {
  const acc::launcher::StreamMap map = parse_stream_map("0:1,12:2,0:3", "");
  CHECK(map.of(0) == Streams::both);
  CHECK(map.of(12) == Streams::err);
  CHECK(map.of(1) == Streams::none);
}

TEST_CASE("streams: anything else is an error that shows the form", "[plan]") {
  for (const auto* text : {"4", "x", "", "0:", ":1", "0:4", "0:1,", "-1:1"}) {
    const std::string error = acc::test::error_of([&] { parse_stream_map(text, "--tee"); });
    CHECK(error.starts_with("--tee: '" + std::string(text) + "' is neither"));
  }
}

TEST_CASE("streams: a filter is a list of ranks", "[plan]") {
  CHECK(acc::launcher::parse_ranks("0, 2", "") == std::vector<int>{0, 2});
  CHECK(acc::launcher::parse_ranks("1-3,10-10", "") == std::vector<int>{1, 2, 3, 10});
  CHECK(acc::launcher::parse_ranks("", "").empty());
  CHECK(acc::test::error_of([] {
          acc::launcher::parse_ranks("0,x", "--local-ranks-filter");
        }).starts_with("--local-ranks-filter: 'x'"));
  for (const auto* text : {"3-1", "-1", "1-", "0-9999999"}) {
    CHECK(acc::test::error_of([&] { acc::launcher::parse_ranks(text, "--ranks-filter"); }) ==
          "--ranks-filter: '" + std::string(text) + "' is not a rank (as in 0,2,5 or 0-3)");
  }
}

TEST_CASE("streams: words are separated by commas, two commas are one in a word", "[plan]") {
  using Words = std::vector<std::string>;
  CHECK(acc::launcher::parse_words("apple, pear") == Words{"apple", " pear"});
  CHECK(acc::launcher::parse_words("zz,,z") == Words{"zz,z"});
  CHECK(acc::launcher::parse_words("a,,,b") == Words{"a,", "b"});
  CHECK(acc::launcher::parse_words("").empty());
  CHECK(acc::launcher::parse_words("a,") == Words{"a"});
}
