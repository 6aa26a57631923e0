// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/pickle_writer.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "acc/formats/pickle_reader.hpp"
#include "support/catch.hpp"

namespace pickle_writer_test {

using acc::PickleReader;
using acc::PickleValue;
using acc::PickleWriter;
using namespace std::string_literals;

TEST_CASE("pickle writer: the opcodes of protocol 4", "[formats]") {
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

TEST_CASE("pickle writer: numbers of any size can be read again", "[formats]") {
  const std::int64_t number =
      GENERATE(0, 1, 255, 256, 65535, 65536, -1, 2147483647LL, 2147483648LL, -2147483649LL,
               std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min());
  PickleWriter writer;
  writer.integer(number);
  PickleReader reader({});
  CHECK(reader.read(writer.finish()).integer == number);
}

TEST_CASE("pickle writer: a number that has no sign may have 64 bits", "[formats]") {
  const std::uint64_t number =
      GENERATE(0ULL, 9223372036854775807ULL, 9223372036854775808ULL, 18446744073709551615ULL);
  PickleWriter writer;
  writer.unsigned_integer(number);
  PickleReader reader = PickleReader::of_any_class();
  const PickleValue& value = reader.read(writer.finish());
  CHECK(static_cast<std::uint64_t>(value.integer) == number);
  CHECK(value.type ==
        (number >> 63U == 0 ? PickleValue::Type::integer : PickleValue::Type::unsigned_integer));
}

TEST_CASE("pickle writer: long texts and a long memory", "[formats]") {
  PickleWriter writer;
  writer.empty_set();
  writer.mark();
  std::uint32_t last = 0;
  for (int i = 0; i < 300; ++i) {
    writer.text(std::string(static_cast<std::size_t>(i), 'x'));
    last = writer.memoize();
  }
  writer.get_memo(last);
  writer.get_memo(7);
  writer.fill_set();
  PickleReader reader({});
  const PickleValue& set = reader.read(writer.finish());
  REQUIRE(set.items.size() == 302);
  CHECK(set.items[300]->text.size() == 299);
  CHECK(set.items[301]->text.size() == 7);
}

TEST_CASE("pickle writer: protocol 2 has no opcode of a later one", "[formats]") {
  PickleWriter writer(2);
  writer.empty_list();
  writer.mark();
  writer.text("k");
  writer.memoize();
  writer.real(0.1);
  writer.class_name("m", "C");
  writer.mark();
  writer.integer(1);
  writer.tuple_of_marked();
  writer.persistent();
  writer.fill_list();
  CHECK(writer.finish() ==
        "\x80\x02](X\1\0\0\0kr\0\0\0\0G?\xb9\x99\x99\x99\x99\x99\x9a"s + "cm\nC\n(K\1tQe.");
}

}  // namespace pickle_writer_test
