// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/stateful.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace stateful_test {

TEST_CASE("json value: what JSON can represent is read back unchanged", "[runtime]") {
  const std::string text =
      R"({"b":true,"a":null,"i":-5,"r":0.1,"t":"x","l":[1,[2.5]],"o":{"k":9007199254740993}})";
  CHECK(acc::detail::to_json(acc::detail::from_json(text)) == text);
}

TEST_CASE("json value: integers of 64 bits keep their sign, also in a file", "[runtime]") {
  const std::string text =
      "[9223372036854775807,9223372036854775808,18446744073709551615,-9223372036854775808]";
  const auto file = acc::test::temporary_folder() / "file.pt";
  acc::write_pt_file(file, acc::detail::from_json(text));
  const acc::PtValue read = acc::read_pt_file(file);
  CHECK(acc::detail::to_json(read) == text);
  CHECK(read.get_if<acc::PtList>()->at(1).number() == 0x1p63);
}

TEST_CASE("json value: what JSON cannot represent becomes null", "[runtime]") {
  const acc::PtValue value = acc::PtDict{{"inf", std::numeric_limits<double>::infinity()},
                                         {"object", acc::PtObject{"m.C"}},
                                         {"one", acc::test::numbers({2.5}, {}, at::kDouble)},
                                         {"many", acc::test::numbers({1, 2}, {2}, at::kFloat)},
                                         {7, "no text"},
                                         {"tuple", acc::PtTuple{{1}}}};
  CHECK(acc::detail::to_json(value) == R"({"inf":null,"object":null,"one":2.5,"many":null,"tuple":[1]})");
}

TEST_CASE("json value: text that is not JSON is an error", "[runtime]") {
  CHECK(acc::test::error_of([] { acc::detail::from_json("{"); }) ==
        "checkpoint state: is not JSON: '{' (return what nlohmann::json(value).dump() gives)");
}

namespace {

struct WithJson {
  std::string text = R"({"a":1})";
  std::string state() const { return text; }
  void load_state(std::string_view given) { text = given; }
};

struct WithTensor {
  at::Tensor tensor;
  acc::PtValue state() const { return tensor; }
  void load_state(const acc::PtValue& value) { tensor = *value.get_if<at::Tensor>(); }
};

}  // namespace

TEST_CASE("stateful: JSON state is plain data in the checkpoint", "[runtime]") {
  WithJson object;
  const acc::Stateful stateful = acc::stateful(object);
  CHECK(stateful.state().find("a")->number() == 1);
  stateful.load_state(acc::PtDict{{"b", 2}});
  CHECK(object.text == R"({"b":2})");
}

TEST_CASE("stateful: a state can hold tensors", "[runtime]") {
  WithTensor object{acc::test::numbers({1, 2}, {2}, at::kFloat)};
  const acc::Stateful stateful = acc::stateful(object);
  CHECK(stateful.state().get_if<at::Tensor>()->numel() == 2);
  stateful.load_state(acc::test::numbers({3}, {1}, at::kFloat));
  CHECK(object.tensor.numel() == 1);
}

}  // namespace stateful_test
