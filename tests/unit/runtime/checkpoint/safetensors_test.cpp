// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/safetensors.hpp"

#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace safetensors_test {

namespace {

using acc::test::numbers;

std::filesystem::path new_file() {
  return acc::test::temporary_folder() / "file.safetensors";
}

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + data;
}

std::string failure_of(const std::string& content) {
  const auto file = new_file();
  acc::replace_file(file, content);
  try {
    acc::read_safetensors(file);
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == file.string());
    return error.problems().front().what;
  }
  return "none";
}

std::string entry(const std::string& rest) {
  return "{\"w\":{" + rest + "}}";
}

}  // namespace

TEST_CASE("safetensors: every type, shape and text is read back unchanged", "[runtime]") {
  acc::Safetensors written{.metadata = {{"format", "pt"}, {"odd \"text\"", "line\nend"}}};
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte, at::kBool, at::kComplexFloat}) {
    written.tensors[std::string("layer.") + c10::toString(type)] = numbers({0, 1, 2, 3, 4, 5}, {2, 3}, type);
  }
  written.tensors["scalar"] = numbers({7}, {}, at::kFloat);
  written.tensors["empty"] = numbers({}, {0, 4}, at::kFloat);
  const auto file = new_file();
  acc::write_safetensors(file, written);
  const acc::Safetensors read = acc::read_safetensors(file);
  CHECK(read.metadata == written.metadata);
  REQUIRE(read.tensors.size() == written.tensors.size());
  for (const auto& [name, tensor] : written.tensors) {
    INFO(name);
    CHECK(read.tensors.at(name).scalar_type() == tensor.scalar_type());
    CHECK(read.tensors.at(name).equal(tensor));
  }
}

TEST_CASE("safetensors: a view with strides is written as its elements", "[runtime]") {
  const at::Tensor transposed = numbers({0, 1, 2, 3, 4, 5}, {2, 3}, at::kFloat).t();
  const auto file = new_file();
  acc::write_safetensors(file, {.tensors = {{"t", transposed}}});
  CHECK(acc::read_safetensors(file).tensors.at("t").equal(transposed));
}

TEST_CASE("safetensors: writing to a tensor that was read does not change the file", "[runtime]") {
  const auto file = new_file();
  acc::write_safetensors(file, {.tensors = {{"w", numbers({1, 2}, {2}, at::kFloat)}}});
  acc::read_safetensors(file).tensors.at("w").zero_();
  CHECK(acc::read_safetensors(file).tensors.at("w").equal(numbers({1, 2}, {2}, at::kFloat)));
}

TEST_CASE("safetensors: a type that the format lacks is an error that names the tensor", "[runtime]") {
  try {
    acc::write_safetensors(new_file(),
                           {.tensors = {{"z", numbers({1}, {1}, at::kFloat).to(at::kComplexDouble)}}});
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()) ==
          "tensor 'z': ComplexDouble cannot be written to a safetensors file (convert it, as in "
          "tensor.to(at::kComplexFloat); or save_state with safe_serialization = false keeps it as it is)");
  }
}

TEST_CASE("safetensors: unsigned and complex numbers have Python's dtypes", "[runtime]") {
  const auto file = new_file();
  acc::NamedTensors written;
  for (const at::ScalarType type : {at::kUInt16, at::kUInt32, at::kUInt64, at::kComplexFloat})
    written[c10::toString(type)] = numbers({1}, {1}, at::kFloat).to(type);
  acc::write_safetensors(file, {.tensors = written});
  const std::string text = acc::read_file(file);
  for (const char* dtype : {"U16", "U32", "U64", "C64"})
    CHECK(text.find(std::string("\"dtype\":\"") + dtype + '"') != std::string::npos);
  for (const auto& [name, tensor] : acc::read_safetensors(file).tensors)
    CHECK(tensor.scalar_type() == written.at(name).scalar_type());
}

TEST_CASE("safetensors: what Python wrote of every type is read, and written again byte by byte",
          "[runtime]") {
  // Written by tests/parity/record_safetensors.py.
  const std::filesystem::path recorded =
      std::filesystem::path(ACC_TEST_DATA) / "runtime/safetensors/every_type.safetensors";
  const acc::Safetensors read = acc::read_safetensors(recorded);
  CHECK(read.tensors.at("03 complex64").scalar_type() == at::kComplexFloat);
  CHECK(read.tensors.at("18 bool").equal(numbers({1, 0, 1}, {3}, at::kBool)));
  std::vector<double> bytes(24);
  std::iota(bytes.begin(), bytes.end(), 1);
  const at::Tensor expected = numbers(bytes, {24}, at::kByte);
  for (const auto& [name, tensor] : read.tensors) {
    CAPTURE(name);
    if (tensor.scalar_type() != at::kBool) CHECK(tensor.view(at::kByte).equal(expected));
  }
  const auto file = new_file();
  acc::write_safetensors(file, read);
  CHECK(acc::read_file(file) == acc::read_file(recorded));
}

TEST_CASE("safetensors: each type of 8 bits has Python's dtype", "[runtime]") {
  const std::map<std::string, at::ScalarType> types = {{"F8_E4M3", at::kFloat8_e4m3fn},
                                                       {"F8_E5M2", at::kFloat8_e5m2},
                                                       {"F8_E8M0", at::kFloat8_e8m0fnu},
                                                       {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
                                                       {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz}};
  const at::Tensor bytes = numbers({1, 127}, {2}, at::kByte);
  for (const auto& [dtype, type] : types) {
    const auto file = new_file();
    acc::write_safetensors(file, {.tensors = {{"w", bytes.view(type)}}});
    CHECK(acc::read_file(file).find("\"dtype\":\"" + dtype + '"') != std::string::npos);
    const at::Tensor read = acc::read_safetensors(file).tensors.at("w");
    CHECK(read.scalar_type() == type);
    CHECK(read.view(at::kByte).equal(bytes));
  }
}

TEST_CASE("safetensors: a damaged file is an error and nothing outside of it is read", "[runtime]") {
  const std::string refused = "is not a safetensors file: ";
  CHECK(failure_of("") == refused + "it is too short");
  CHECK(failure_of(std::string(8, '\xff')) == refused + "its header is truncated");
  CHECK(failure_of(with_length("{", "")) == refused + "its header is not a JSON object");
  CHECK(failure_of(with_length("[]", "")) == refused + "its header is not a JSON object");
  const auto damaged = [](const std::string& rest) { return failure_of(with_length(entry(rest), "1234")); };
  const std::string mismatch = refused + "the bytes of 'w' do not match its shape";
  CHECK(damaged(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])") ==
        refused + "'w' has the unknown dtype F31");
  CHECK(damaged(R"("dtype":"F4","shape":[8],"data_offsets":[0,4])") ==
        "tensor 'w' has dtype F4, of less than a byte an element, which is not read");
  CHECK(damaged(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])") ==
        refused + "its header describes 16 bytes of tensors, the file has 4");
  CHECK(damaged(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])") == mismatch);
  CHECK(damaged(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])") == mismatch);
  CHECK(damaged(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])") ==
        refused + "the shape of 'w' has an invalid size");
  CHECK(damaged(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])") == mismatch);
  CHECK(damaged(R"("dtype":"F32","shape":[1])") ==
        refused + "dtype, shape or data_offsets of 'w' are missing or invalid");
  CHECK(damaged(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])") == "none");
}

TEST_CASE("safetensors: an unaligned tensor is read", "[runtime]") {
  const auto file = new_file();
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"I16","shape":[2],"data_offsets":[1,5]}} )";
  acc::replace_file(file, with_length(header, std::string("\x01\x02\x00\x03\x00", 5)));
  CHECK(acc::read_safetensors(file).tensors.at("b").equal(numbers({2, 3}, {2}, at::kShort)));
}

}  // namespace safetensors_test
