// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_file.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/serialize.h>

#include <algorithm>
#include <exception>
#include <fstream>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace pt_file_test {

using acc::PtDict;
using acc::PtValue;

TEST_CASE("pt value: find looks up dict entries by text and by integer", "[runtime]") {
  const PtValue dict = PtDict{{"a", 1}, {0, 2}};
  CHECK(dict.find("a")->number() == 1);
  CHECK(dict.find(0)->number() == 2);
  CHECK(dict.find("0") == nullptr);
  CHECK(PtValue("a").find("a") == nullptr);
}

TEST_CASE("pt value: numbers of every kind", "[runtime]") {
  CHECK(PtValue(true).number() == 1);
  CHECK(PtValue(std::int64_t{-3}).number() == -3);
  CHECK(PtValue(0.5).number() == 0.5);
  CHECK(PtValue(acc::test::numbers({7}, {1}, at::kFloat)).number() == 7);
  CHECK_FALSE(PtValue(acc::test::numbers({7, 8}, {2}, at::kFloat)).number());
  CHECK_FALSE(PtValue("7").number());
  CHECK_FALSE(PtValue().number());
}

namespace {

using acc::PtDict;
using acc::PtList;
using acc::PtObject;
using acc::PtTuple;
using acc::PtValue;
using acc::test::numbers;

// Written by tests/parity/record_pt_files.py.
std::filesystem::path recorded(const std::string& name) {
  return std::filesystem::path(ACC_TEST_DATA) / "runtime" / "pt" / (name + ".pt");
}

const PtValue& entry(const PtValue& dict, std::string_view key) {
  const PtValue* value = dict.find(key);
  REQUIRE(value != nullptr);
  return *value;
}

const at::Tensor& tensor(const PtValue& dict, std::string_view key) {
  const auto* value = entry(dict, key).get_if<at::Tensor>();
  REQUIRE(value != nullptr);
  return *value;
}

std::string error_of(const std::filesystem::path& file) {
  return acc::test::error_of([&] { acc::read_pt_file(file); });
}

}  // namespace

TEST_CASE("pt reader: plain data of Python", "[runtime]") {
  const PtValue plain = acc::read_pt_file(recorded("plain"));
  CHECK(entry(plain, "none").is_none());
  CHECK(*entry(plain, "yes").get_if<bool>());
  CHECK_FALSE(*entry(plain, "no").get_if<bool>());
  CHECK(*entry(plain, "small").get_if<std::int64_t>() == 7);
  CHECK(*entry(plain, "negative").get_if<std::int64_t>() == -70000);
  CHECK(*entry(plain, "large").get_if<std::int64_t>() == std::int64_t{1} << 40);
  CHECK(entry(plain, "huge").get_if<PtObject>()->class_name == "builtins.int");
  CHECK(*entry(plain, "real").get_if<double>() == 0.1);
  CHECK(*entry(plain, "text").get_if<std::string>() == "größe");
  const auto* list = entry(plain, "list").get_if<PtList>();
  REQUIRE((list != nullptr && list->size() == 2));
  CHECK(*list->at(1).get_if<PtList>()->at(0).get_if<double>() == 2.5);
  const auto* tuple = entry(plain, "tuple").get_if<PtTuple>();
  REQUIRE((tuple != nullptr && tuple->items.size() == 3));
  CHECK(tuple->items[2].get_if<PtTuple>()->items.empty());
  CHECK(*entry(plain, "size").get_if<PtTuple>()->items.at(1).get_if<std::int64_t>() == 3);
  CHECK(*plain.find(5)->get_if<std::string>() == "five");
  CHECK(entry(entry(plain, "ordered"), "a").number() == 1);
  CHECK(plain.find("missing") == nullptr);
}

TEST_CASE("pt reader: collections and bytes of Python", "[runtime]") {
  const PtValue file = acc::read_pt_file(recorded(GENERATE("collections", "collections_of_protocol_4")));
  const auto number_in = [&](const char* key) { return entry(file, key).get_if<PtList>()->at(0).number(); };
  CHECK(number_in("set") == 3);
  CHECK(number_in("frozenset") == 4);
  CHECK(entry(file, "no_set").get_if<PtList>()->empty());
  CHECK(entry(entry(file, "defaultdict"), "a").number() == 5);
  CHECK(*entry(file, "bytes").get_if<std::string>() == "a\x7f\x80\xbf\xc0\xff");
  CHECK(*entry(file, "bytearray").get_if<std::string>() == "b\xff");
  CHECK(entry(file, "no_bytes").get_if<std::string>()->empty());
  CHECK(entry(file, "no_bytearray").get_if<std::string>()->empty());
}

TEST_CASE("pt reader: tensors with strides, offsets and a shared storage", "[runtime]") {
  const PtValue file = acc::read_pt_file(recorded("tensors"));
  const at::Tensor grid = numbers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4}, at::kFloat);
  CHECK(tensor(file, "grid").equal(grid));
  CHECK(tensor(file, "transposed").equal(grid.t()));
  CHECK(tensor(file, "transposed").strides() == grid.t().strides());
  CHECK(tensor(file, "row").equal(grid[1]));
  CHECK(tensor(file, "row").const_data_ptr() == tensor(file, "grid")[1].const_data_ptr());
  CHECK(tensor(file, "scalar").item<double>() == 2.5);
  CHECK(tensor(file, "empty").sizes() == c10::IntArrayRef({0, 3}));
  CHECK(tensor(file, "parameter").equal(at::ones({2})));
  CHECK(tensor(file, "expanded").equal(numbers({1, 2}, {2}, at::kFloat).expand({3, 2})));
}

TEST_CASE("pt reader: every element type", "[runtime]") {
  const PtValue file = acc::read_pt_file(recorded("types"));
  const auto* dict = file.get_if<PtDict>();
  REQUIRE((dict != nullptr && dict->size() == 17));
  for (const acc::PtEntry& entry : *dict) {
    INFO(*entry.key.get_if<std::string>());
    const auto* values = entry.value.get_if<at::Tensor>();
    REQUIRE(values != nullptr);
    CHECK(values->to(at::kComplexDouble).equal(numbers({0, 1, 1}, {3}, at::kDouble).to(at::kComplexDouble)));
  }
}

TEST_CASE("pt reader: numpy's objects in a file of random states are ignored", "[runtime]") {
  const PtValue file = acc::read_pt_file(recorded("random"));
  CHECK(entry(file, "step").number() == 3);
  CHECK(tensor(file, "torch_manual_seed").numel() == 5056);
  CHECK(entry(file, "numpy_float").get_if<PtObject>() != nullptr);
}

TEST_CASE("pt reader: nothing in a file is executed", "[runtime]") {
  const auto folder = acc::test::temporary_folder();
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const PtValue file = acc::read_pt_file(recorded("runs_code"));
  std::filesystem::current_path(before);
  CHECK(entry(file, "a").get_if<PtObject>()->class_name == "posix.system");
  CHECK(tensor(file, "b").numel() == 12);
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("pt reader: an unsupported file is an error of one line that says what it is", "[runtime]") {
  const auto [name, failure] = GENERATE(table<std::string, std::string>({
      {"old_format", "is in the format of PyTorch before 1.6"},
      {"conjugated", "holds a conjugated or negated view of a tensor"},
      {"sparse", "holds a tensor of a kind that acc does not support"},
      {"circle", "holds values that contain themselves"},
  }));
  const std::string error = error_of(recorded(name));
  CHECK(error.starts_with(recorded(name).string() + ": " + failure));
  CHECK(error.find('\n') == std::string::npos);
}

TEST_CASE("pt reader: a file of C++'s torch::save is recognized and refused", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "tensor.pt";
  torch::save(at::ones({2}), file.string());
  CHECK(error_of(file) ==
        file.string() +
            ": is a TorchScript archive, as torch.jit.save and torch::save of C++ write them "
            "(save a state_dict in Python, or with save_model)");
}

TEST_CASE("pt reader: a truncated file is an error that names it", "[runtime]") {
  const std::string whole = acc::read_file(recorded("tensors"));
  const auto file = acc::test::temporary_folder() / "cut.pt";
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    acc::replace_file(file, std::string_view(whole).substr(0, size));
    CHECK(error_of(file).starts_with(file.string() + ": "));
  }
}

TEST_CASE("pt reader: a damaged file gives an error or other values, never undefined behaviour",
          "[runtime]") {
  const std::string whole = acc::read_file(recorded("tensors"));
  const auto file = acc::test::temporary_folder() / "damaged.pt";
  for (std::size_t offset = 0; offset < whole.size(); ++offset) {
    std::string damaged = whole;
    damaged[offset] = static_cast<char>(damaged[offset] ^ 0x41);
    std::ofstream(file, std::ios::binary) << damaged;
    try {
      const PtValue value = acc::read_pt_file(file);
      if (const auto* dict = value.get_if<PtDict>()) {
        for (const acc::PtEntry& entry : *dict) {
          if (const auto* one = entry.value.get_if<at::Tensor>()) one->clone();
        }
      }
    } catch (const acc::Error&) {
      SUCCEED("refused");
    }
  }
}

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

TEST_CASE("pt writer: plain data is read back unchanged", "[runtime]") {
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

TEST_CASE("pt writer: a string that is not UTF-8 is written as bytes", "[runtime]") {
  const std::string bytes = "gr\xfc\x80\xff";
  const PtValue read = written(PtDict{{"raw", bytes}, {bytes, 1}, {"text", "größe"}});
  CHECK(*read.find("raw")->get_if<std::string>() == bytes);
  CHECK(read.find(bytes)->number() == 1);
  CHECK(*read.find("text")->get_if<std::string>() == "größe");
}

TEST_CASE("pt writer: tensors of every type and stride are read back unchanged", "[runtime]") {
  for (const at::ScalarType type : acc::detail::kScalarTypes) {
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

TEST_CASE("pt writer: has every type that safetensors files have", "[runtime]") {
  const auto is_in_safetensors = [](at::ScalarType type) {
    try {
      acc::detail::require_writable({{"a", at::empty({0}, type)}});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  int occurrences = 0;
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
    const auto type = static_cast<at::ScalarType>(i);
    if (!is_in_safetensors(type)) continue;
    INFO(c10::toString(type));
    ++occurrences;
    CHECK(std::ranges::count(acc::detail::kScalarTypes, type) == 1);
  }
  CHECK(occurrences > 0);
}

TEST_CASE("pt writer: an object cannot be written, and the old file is kept", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "file.pt";
  acc::write_pt_file(file, 1);
  CHECK(acc::test::error_of([&] { acc::write_pt_file(file, acc::PtObject{"m.C"}); }) ==
        file.string() + ": cannot hold an object of class m.C");
  CHECK(acc::read_pt_file(file).number() == 1);
}

}  // namespace pt_file_test
