// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_writer.hpp"

#include "acc/base/error.hpp"
#include "acc/runtime/checkpoint/pt_reader.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace {

using acc::PtDict;
using acc::PtList;
using acc::PtTuple;
using acc::PtValue;
using acc::test::numbers;

PtValue written(const PtValue& value) {
  const auto file = acc::test::temporary_folder() / "file.pt";
  acc::write_pt_file(file, value);
  return acc::read_pt_file(file);
}

}  // namespace

TEST_CASE("pt writer: plain data comes back as it was", "[runtime]") {
  const PtValue read = written(PtDict{{"none", {}},
                                      {"yes", true},
                                      {"number", std::int64_t{1} << 40},
                                      {"real", 0.1},
                                      {"text", std::string(300, 'x')},
                                      {7, PtList{1, PtTuple{{}}, PtDict{}}}});
  CHECK(read.find("none")->is_none());
  CHECK(*read.find("yes")->get_if<bool>());
  CHECK(*read.find("number")->get_if<std::int64_t>() == std::int64_t{1} << 40);
  CHECK(*read.find("real")->get_if<double>() == 0.1);
  CHECK(read.find("text")->get_if<std::string>()->size() == 300);
  const auto* list = read.find(7)->get_if<PtList>();
  REQUIRE((list != nullptr && list->size() == 3));
  CHECK(list->at(1).get_if<PtTuple>()->items.empty());
  CHECK(list->at(2).get_if<PtDict>()->empty());
}

TEST_CASE("pt writer: tensors of every type and any stride come back as they were", "[runtime]") {
  for (const at::ScalarType type : acc::kScalarTypes) {
    INFO(c10::toString(type));
    const at::Tensor tensor = numbers({0, 1, 0, 1, 1, 0}, {2, 3}, at::kFloat).to(type).t();
    const PtValue read = written(tensor);
    const auto* back = read.get_if<at::Tensor>();
    REQUIRE(back != nullptr);
    CHECK(back->scalar_type() == type);
    // Every type can be compared as this one.
    CHECK(back->to(at::kComplexDouble).equal(tensor.to(at::kComplexDouble)));
  }
  CHECK(written(numbers({}, {0, 4}, at::kFloat)).get_if<at::Tensor>()->sizes() == c10::IntArrayRef({0, 4}));
  CHECK(written(numbers({3}, {}, at::kDouble)).number() == 3);
}

TEST_CASE("pt writer: an object cannot be written, and the old file stays", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "file.pt";
  acc::write_pt_file(file, 1);
  CHECK(acc::test::error_of([&] { acc::write_pt_file(file, acc::PtObject{"m.C"}); }) ==
        file.string() + ": cannot be given an object of m.C");
  CHECK(acc::read_pt_file(file).number() == 1);
}
