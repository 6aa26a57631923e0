// SPDX-License-Identifier: Apache-2.0
#include "acc/base/byte_reader.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace byte_reader_test {

using acc::ByteReader;
using acc::test::error_of;

namespace {

const std::string kDamaged =
    "here: what another process sent is damaged (let all processes run the same program)";

std::string written() {
  std::string bytes;
  acc::append_number(bytes, std::int32_t{-7});
  acc::append_text(bytes, "");
  acc::append_text(bytes, std::string_view("a\0b", 3));
  acc::append_number(bytes, 0.5);
  return bytes + "rest";
}

}  // namespace

TEST_CASE("byte_reader: what was written is read in order", "[base]") {
  const std::string bytes = written();
  ByteReader reader(bytes, "here");
  CHECK(reader.number<std::int32_t>() == -7);
  CHECK(reader.text().empty());
  CHECK(reader.text() == std::string_view("a\0b", 3));
  CHECK(reader.number<double>() == 0.5);
  CHECK_FALSE(reader.is_at_end());
  CHECK(reader.take_rest() == "rest");
  CHECK(reader.is_at_end());
}

TEST_CASE("byte_reader: wherever it is cut short, it is refused in words", "[base]") {
  const std::string bytes = written();
  for (std::size_t size = 0; size < bytes.size() - 4; ++size) {
    ByteReader reader(std::string_view(bytes).substr(0, size), "here");
    CHECK(error_of([&] {
            reader.number<std::int32_t>();
            reader.text();
            reader.text();
            reader.number<double>();
          }) == kDamaged);
  }
}

TEST_CASE("byte_reader: no number of items needs more memory than there are bytes", "[base]") {
  const auto count_in = [](std::uint64_t number) {
    std::string bytes;
    acc::append_number(bytes, number);
    bytes += "sixteen of bytes";
    return error_of([&] {
      const std::size_t count = ByteReader(bytes, "here").count(8);
      CHECK(count == number);
    });
  };
  CHECK(count_in(0) == "no error");
  CHECK(count_in(2) == "no error");
  CHECK(count_in(3) == kDamaged);
  CHECK(count_in(~std::uint64_t{0}) == kDamaged);
}

}  // namespace byte_reader_test
