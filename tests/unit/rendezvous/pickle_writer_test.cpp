// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/pickle_writer.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "acc/rendezvous/pickle_reader.hpp"
#include "support/catch.hpp"

using acc::PickleReader;
using acc::PickleValue;
using acc::PickleWriter;
using namespace std::string_literals;

TEST_CASE("pickle writer: the opcodes of protocol 4", "[rendezvous]") {
  PickleWriter writer;
  writer.class_name("m", "C");
  writer.empty_tuple();
  writer.new_object();
  writer.empty_dict();
  writer.mark();
  writer.text("k");
  writer.boolean(true);
  writer.fill_dict();
  writer.build();
  CHECK(writer.finish() == "\x80\x04\x8c\x01m\x8c\x01"s + "C\x93)\x81}(\x8c\x01k\x88ub.");
}

TEST_CASE("pickle writer: numbers of any size can be read again", "[rendezvous]") {
  const std::int64_t number =
      GENERATE(0, 1, 255, 256, 65535, 65536, -1, 2147483647LL, 2147483648LL, -2147483649LL,
               std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min());
  PickleWriter writer;
  writer.integer(number);
  PickleReader reader({});
  CHECK(reader.read(writer.finish()).integer == number);
}

TEST_CASE("pickle writer: long texts and a long memory", "[rendezvous]") {
  PickleWriter writer;
  writer.empty_set();
  writer.mark();
  std::uint32_t last = 0;
  for (int i = 0; i < 300; ++i) {
    writer.text(std::string(static_cast<std::size_t>(i), 'x'));
    last = writer.remember();
  }
  writer.again(last);
  writer.again(7);
  writer.fill_set();
  PickleReader reader({});
  const PickleValue& set = reader.read(writer.finish());
  REQUIRE(set.items.size() == 302);
  CHECK(set.items[300]->text.size() == 299);
  CHECK(set.items[301]->text.size() == 7);
}
