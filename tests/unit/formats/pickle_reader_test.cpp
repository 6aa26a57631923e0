// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/pickle_reader.hpp"

#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace pickle_reader_test {

namespace {

using acc::PickleReader;
using acc::PickleValue;
using namespace std::string_literals;

std::string error_of(const std::string& pickle) {
  return acc::test::error_of([&] { PickleReader({"m.C"}).read(pickle); });
}

}  // namespace

TEST_CASE("pickle reader: plain data", "[formats]") {
  // pickle.dumps({"a": (1, -2, None), "b": [True] as a set}, 2) and the same in protocol 4
  const std::string pickle =
      GENERATE("\x80\x02}q\0(X\1\0\0\0aq\1K\1J\xfe\xff\xff\xffN\x87X\1\0\0\0b\x8f(\x88\x90u."s,
               "\x80\x04}\x94(\x8c\1a\x94K\1J\xfe\xff\xff\xffN\x87\x8c\1b\x8f(\x88\x90u."s);
  PickleReader reader({});
  const PickleValue& dict = reader.read(pickle);
  REQUIRE(dict.pairs.size() == 2);
  CHECK(dict.pairs[0].first->text == "a");
  const auto& items = dict.pairs[0].second->items;
  REQUIRE(items.size() == 3);
  CHECK(items[0]->integer == 1);
  CHECK(items[1]->integer == -2);
  CHECK(items[2]->type == PickleValue::Type::none);
  REQUIRE(dict.pairs[1].second->items.size() == 1);
  CHECK(dict.pairs[1].second->items[0]->type == PickleValue::Type::boolean);
}

TEST_CASE("pickle reader: an object has class, arguments and members, and a shared one is read once",
          "[formats]") {
  PickleReader reader({"m.C"});
  const PickleValue& pair =
      reader.read("\x80\x04\x8c\1m\x8c\1"s + "C\x93\x94K\7\x85R}\x8c\1kK\5sb\x94h\1\x86.");
  REQUIRE(pair.items.size() == 2);
  CHECK(pair.items[0] == pair.items[1]);
  const PickleValue& object = *pair.items[0];
  CHECK(object.text == "m.C");
  CHECK(object.arguments->items.front()->integer == 7);
  CHECK(object.state->pairs.front().second->integer == 5);
}

TEST_CASE("pickle reader: refuses unknown and invalid pickles", "[formats]") {
  const auto [pickle, text] = GENERATE(table<std::string, std::string>({
      {"", "the pickle ends in the middle"},
      {"\x80\x04", "the pickle ends in the middle"},
      {"\x80\x06N.", "the pickle's protocol is newer than 5"},
      {"\x80\x04\x8c\5os", "the pickle ends in the middle"},
      {"I7\n.", "the pickle uses opcode 73, which plain data does not need"},
      {"cos\nsystem\n.", "the pickle has an unknown class, os.system"},
      {"cos\nsystem", "the pickle ends in the middle"},
      {"\x8c\2os\x8c\6system\x93.", "the pickle has an unknown class, os.system"},
      {"N)R.", "the pickle makes an object without a class"},
      {"\x8c\1m\x8c\1"s + "C\x93NR.", "the pickle makes an object without a class"},
      {"N}b.", "the pickle sets the state of a value that is not an object"},
      {"NNNs.", "the pickle adds pairs to a value that is not a dict"},
      {"}(Nu.", "the pickle adds pairs to a value that is not a dict"},
      {"}Na.", "the pickle adds items to a value that is not a list"},
      {"}(N\x90.", "the pickle adds items to a value that is not a set"},
      {"h\0."s, "the pickle refers to a missing memo entry"},
      {"Nq\1.", "the pickle's memo has gaps"},
      {"\x8a\x09", "a number in the pickle has more than 64 bits"},
      {".", "the pickle pops an empty stack"},
      {"N(\x85.", "the pickle pops an empty stack"},
      {"u", "the pickle lacks a mark"},
      {"NN.", "the pickle leaves values on its stack"},
      {"N.N", "the pickle leaves values on its stack"},
  }));
  CHECK(error_of(pickle) == text);
}

TEST_CASE("pickle reader: lists, and reals with all their bits", "[formats]") {
  PickleReader reader({});
  const PickleValue& list = reader.read("\x80\x02]q\0(G?\xb9\x99\x99\x99\x99\x99\x9aNe]K\1a\x86."s);
  REQUIRE(list.items.size() == 2);
  REQUIRE(list.items[0]->type == PickleValue::Type::list);
  REQUIRE(list.items[0]->items.size() == 2);
  CHECK(list.items[0]->items[0]->real == 0.1);
  CHECK(list.items[1]->items.front()->integer == 1);
}

TEST_CASE("pickle reader: persistent objects have their id", "[formats]") {
  PickleReader reader({});
  const PickleValue& value = reader.read("\x80\x02K\7\x85Q.");
  REQUIRE(value.type == PickleValue::Type::persistent);
  CHECK(value.arguments->items.front()->integer == 7);
}

TEST_CASE("pickle reader: objects of any class, when asked for, are read and nothing is run", "[formats]") {
  PickleReader reader = PickleReader::of_any_class();
  const PickleValue& made = reader.read("cos\nsystem\nX\4\0\0\0true\x85RK\5b."s);
  CHECK(made.type == PickleValue::Type::object);
  CHECK(made.text == "os.system");
  CHECK(made.arguments->items.front()->text == "true");
  CHECK(made.state->integer == 5);
  const PickleValue& filled = reader.read("ccollections\nOrderedDict\n)RK\1K\2s(K\3e.");
  CHECK(filled.pairs.front().second->integer == 2);
  CHECK(filled.items.front()->integer == 3);
  CHECK(reader.read("\x8a\x09"s + "123456789.").text == "builtins.int");
}

}  // namespace pickle_reader_test
