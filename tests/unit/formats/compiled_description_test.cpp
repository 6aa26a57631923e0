// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/compiled_description.hpp"

#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/compiled_description.hpp"
#include "support/errors.hpp"

namespace compiled_description_test {

using acc::CompiledDescription;
using acc::parse_compiled_description;
using acc::TensorInfo;
using acc::test::compiled_description;
using acc::test::error_of;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

// The error for this description.
std::string refusal(const json& changed) {
  return error_of([&] { parse_compiled_description(changed.dump()); });
}

// Its tensors, in any order.
std::vector<TensorInfo> tensors() {
  return {{.name = "count", .dtype = "I64"}, {.name = "scale"}, {.name = "layer.weight", .dtype = "BF16"}};
}

std::string refusal(const json& changed, const std::vector<TensorInfo>& of_file) {
  return error_of([&] { require_tensors(parse_compiled_description(changed.dump()), of_file); });
}

}  // namespace

TEST_CASE("compiled_description: says what the step takes and returns", "[formats]") {
  const CompiledDescription read = parse_compiled_description(compiled_description().dump());
  CHECK(read.model == "Net");
  CHECK(read.is_bf16);
  CHECK(read.smallest_batch == 2);
  REQUIRE(read.inputs.size() == 2);
  CHECK(read.inputs[0].dtype->name == "float32");
  CHECK((read.inputs[0].shape == std::vector<std::optional<std::int64_t>>{std::nullopt, 2}));
  CHECK(read.inputs[1].dtype->name == "int64");
  CHECK(read.parameters.at(1).name == "scale");
  CHECK_FALSE(read.parameters.at(1).trained);
  CHECK(read.training.constants.at("b2") == "count");
  CHECK(read.training.gradients == std::vector<std::string>{"layer.weight"});
  CHECK(read.training.checks == std::vector<std::string>{"a label is out of range"});
}

TEST_CASE("compiled_description: one of another format, or damaged, is refused", "[formats]") {
  json other = compiled_description();
  other["format"] = 2;
  CHECK_THAT(refusal(other), Contains("is of format 2, and this acc reads 1"));
  const json whole = compiled_description();
  for (const auto& item : whole.items()) {
    json lacking = whole;
    lacking.erase(item.key());
    CHECK_THAT(refusal(lacking), Contains("is a damaged package"));
  }
  CHECK_THAT(error_of([] { parse_compiled_description("{"); }), Contains("is a damaged package"));
  const std::string deep = "{\"format\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  CHECK_THAT(error_of([&] { parse_compiled_description(deep); }), Contains("is nested too deeply"));
  json wordy = whole;
  wordy["format"] = std::string(100'000, 'x');
  CHECK(refusal(wordy).size() < 300);
}

TEST_CASE("compiled_description: numbers, types and a precision that are none are refused", "[formats]") {
  for (const json& size : {json(-1), json(0.5), json(1e300), json("2")}) {
    INFO(size);
    json other = compiled_description();
    other["inputs"][0]["shape"][1] = size;
    CHECK_THAT(refusal(other), Contains("is a damaged package"));
  }
  json other = compiled_description();
  other["checksum"] = 4'294'967'296;
  CHECK_THAT(refusal(other), Contains("is a damaged package"));
  other = compiled_description();
  other["inputs"][0]["dtype"] = "float33";
  CHECK_THAT(refusal(other), Contains("has inputs of the unknown type 'float33'"));
  other = compiled_description();
  other["precision"] = "fp16";
  CHECK_THAT(refusal(other), Contains("was compiled for the unknown precision 'fp16'"));
}

TEST_CASE("compiled_description: names that no module can have are refused", "[formats]") {
  std::string deep = "weight";
  for (int layer = 0; layer < 100'000; ++layer) deep.insert(0, "a.");
  for (const std::string& name :
       {std::string(), std::string("layer."), std::string(".weight"), std::string("layer..weight"), deep}) {
    json other = compiled_description();
    other["parameters"][0][0] = name;
    other["groups"] = json::object();
    CHECK_THAT(refusal(other), Contains("has a tensor of the impossible name '"));
    CHECK(refusal(other).size() < 300);
  }
  json twice = compiled_description();
  twice["buffers"] = {"count", "scale"};
  CHECK_THAT(refusal(twice), Contains("has the tensor 'scale' twice"));
  json group = compiled_description();
  group["groups"]["slow"] = {"count"};
  CHECK_THAT(refusal(group), Contains("has 'count' in a group, which is not a parameter"));
}

TEST_CASE("compiled_description: the tensors of its file are all there, with gradients", "[formats]") {
  CHECK(refusal(compiled_description(), tensors()) == "no error");
  std::vector<TensorInfo> lacking = tensors();
  lacking.erase(lacking.begin());
  CHECK_THAT(refusal(compiled_description(), lacking), Contains("lacks the tensor 'count'"));
  std::vector<TensorInfo> whole_numbers = tensors();
  whole_numbers[2].dtype = "BOOL";
  CHECK_THAT(refusal(compiled_description(), whole_numbers),
             Contains("trains 'layer.weight', whose numbers are whole"));
  whole_numbers = tensors();
  whole_numbers[1].dtype = "I32";
  CHECK(refusal(compiled_description(), whole_numbers) == "no error");
  json without = compiled_description();
  without["libraries"]["training"]["gradients"] = json::array();
  CHECK_THAT(refusal(without, tensors()), Contains("has not one gradient of each trained parameter"));
  json unknown = compiled_description();
  unknown["libraries"]["evaluation"]["constants"]["p9"] = "bias";
  CHECK_THAT(refusal(unknown, tensors()), Contains("lacks the tensor 'bias'"));
}

TEST_CASE("compiled_description: its file and that of the weights are found in the archive", "[formats]") {
  const std::string archive = acc::read_file(ACC_TEST_DATA "/fuzz/compiled_packages/archive");
  const acc::CompiledPackageFiles files = acc::find_compiled_files(archive);
  const CompiledDescription read = parse_compiled_description(files.description);
  CHECK(files.checksum_of_description == "1");
  require_tensors(read, acc::parse_safetensors_header(files.weights, "weights").tensors);
  const std::string other = acc::read_file(ACC_TEST_DATA "/fuzz/compiled_packages/other_archive");
  CHECK_THAT(error_of([&] { acc::find_compiled_files(other); }), Contains("is not a package of acc compile"));
  CHECK_THAT(error_of([] { acc::find_compiled_files("PK"); }), Contains("is not a zip archive"));
}

}  // namespace compiled_description_test
