// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/nested_tensors.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <torch/csrc/api/include/torch/data/example.h>
#include <torch/csrc/api/include/torch/ordered_dict.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace nested_tensors_test {

namespace elsewhere {

struct Output {
  at::Tensor logits;
  int steps = 0;
};

void for_each_tensor(Output& output, const acc::TensorFunction& function) {
  function(output.logits);
}

}  // namespace elsewhere

namespace {

at::Tensor tensor_of(int value) {
  return at::full({}, value);
}

template <class Value>
std::vector<int> values_in(Value value) {
  using acc::for_each_tensor;
  std::vector<int> values;
  for_each_tensor(value, [&](at::Tensor& tensor) { values.push_back(tensor.item<int>()); });
  return values;
}

using Values = std::vector<int>;

}  // namespace

TEST_CASE("nested_tensors: every tensor of a structure is visited once, in order", "[runtime]") {
  CHECK(values_in(tensor_of(1)) == Values{1});
  CHECK(values_in(std::tuple{tensor_of(1), 7, std::pair{tensor_of(2), std::string("text")}}) == Values{1, 2});
  CHECK(values_in(std::vector{std::vector{tensor_of(1)}, std::vector{tensor_of(2), tensor_of(3)}}) ==
        Values{1, 2, 3});
  CHECK(values_in(std::map<std::string, at::Tensor>{{"a", tensor_of(1)}, {"b", tensor_of(2)}}) ==
        Values{1, 2});
  CHECK(values_in(std::optional{std::array{tensor_of(1), tensor_of(2)}}) == Values{1, 2});
  CHECK(values_in(torch::data::Example<>(tensor_of(1), tensor_of(2))) == Values{1, 2});
  torch::OrderedDict<std::string, at::Tensor> dict;
  dict.insert("b", tensor_of(2));
  dict.insert("a", tensor_of(1));
  CHECK(values_in(dict) == Values{2, 1});
}

TEST_CASE("nested_tensors: undefined tensors, absent values and other types are skipped", "[runtime]") {
  CHECK(values_in(at::Tensor()).empty());
  CHECK(values_in(std::optional<at::Tensor>()).empty());
  CHECK(values_in(std::vector<std::optional<at::Tensor>>{std::nullopt, tensor_of(1)}) == Values{1});
  CHECK(values_in(std::tuple{1, std::string("text"), std::vector<bool>{true}, std::vector{1.5}}).empty());
}

TEST_CASE("nested_tensors: a user's type declares where its tensors are", "[runtime]") {
  CHECK(values_in(elsewhere::Output{tensor_of(4), 1}) == Values{4});
  CHECK(values_in(std::vector{elsewhere::Output{tensor_of(4), 1}, elsewhere::Output{tensor_of(5), 1}}) ==
        Values{4, 5});
}

TEST_CASE("nested_tensors: tensors can be replaced", "[runtime]") {
  std::tuple output{tensor_of(1), std::vector{tensor_of(2)}};
  acc::for_each_tensor(output, [](at::Tensor& tensor) { tensor = tensor + 10; });
  CHECK(std::get<0>(output).item<int>() == 11);
  CHECK(std::get<1>(output)[0].item<int>() == 12);
}

TEST_CASE("nested_tensors: every tensor of a structure is mapped, in order", "[runtime]") {
  using Nested = std::tuple<at::Tensor, std::map<std::string, std::vector<at::Tensor>>,
                            std::pair<at::Tensor, std::array<at::Tensor, 1>>>;
  const auto number = [](int value) { return at::full({1}, value); };
  const Nested nested{number(1), {{"a", {number(2), number(3)}}}, {number(4), {number(5)}}};
  std::vector<int> leaves;
  const Nested doubled = acc::map_tensors(nested, [&](const at::Tensor& one) {
    leaves.push_back(one.item<int>());
    return one * 2;
  });
  CHECK(leaves == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(std::get<1>(doubled).at("a").at(1).item<int>() == 6);
  CHECK(std::get<2>(doubled).second[0].item<int>() == 10);
  CHECK(std::get<0>(nested).item<int>() == 1);
  STATIC_REQUIRE_FALSE(acc::TensorStructure<std::vector<int>>);
  STATIC_REQUIRE_FALSE(acc::TensorStructure<std::tuple<at::Tensor, int>>);
  // Types that may differ between processes, or cannot be replaced, do not satisfy the concept.
  STATIC_REQUIRE_FALSE(acc::TensorStructure<std::optional<at::Tensor>>);
  STATIC_REQUIRE_FALSE(acc::TensorStructure<std::unordered_map<std::string, at::Tensor>>);
  STATIC_REQUIRE_FALSE(acc::TensorStructure<at::TensorList>);
  STATIC_REQUIRE_FALSE(acc::TensorStructure<std::string>);
}

}  // namespace nested_tensors_test
