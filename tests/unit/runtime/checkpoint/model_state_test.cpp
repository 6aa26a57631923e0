// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_state.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace model_state_test {

namespace {

struct Net : torch::nn::Module {
  explicit Net(std::int64_t width)
      : first(register_module("first", torch::nn::Linear(3, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))) {}

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
};

}  // namespace

TEST_CASE("model_state: the names are those of Python's state_dict", "[runtime]") {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : acc::state_of(Net(2))) names.push_back(name);
  CHECK(names == std::vector<std::string>{"first.bias", "first.weight", "norm.bias",
                                          "norm.num_batches_tracked", "norm.running_mean", "norm.running_var",
                                          "norm.weight"});
}

TEST_CASE("model_state: one error lists everything that does not match, and nothing is loaded", "[runtime]") {
  Net net(2);
  const at::Tensor before = net.first->weight.detach().clone();
  acc::NamedTensors state = acc::state_of(Net(2));
  state["first.bias"] = acc::test::numbers({1, 2, 3}, {3}, at::kFloat);
  state["norm.wieght"] = state["norm.weight"];
  state.erase("norm.weight");
  try {
    acc::load_state(net, state, "f");
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()) ==
          "f: tensor 'first.bias' is [3], the model's is [2]\n"
          "f: has no tensor 'norm.weight' (did you mean 'norm.wieght'?)\n"
          "f: has a tensor 'norm.wieght' that the model lacks");
  }
  CHECK(net.first->weight.equal(before));
}

TEST_CASE("model_state: a tensor whose elements share memory is named, and nothing is loaded", "[runtime]") {
  Net net(2);
  net.register_buffer("scale", at::ones({1}).expand({4}));
  const at::Tensor before = net.first->weight.detach().clone();
  Net other(2);
  other.register_buffer("scale", at::full({4}, 2.0));
  CHECK(acc::test::error_of([&] { acc::load_state(net, acc::state_of(other), "f"); }) ==
        "f: tensor 'scale' cannot be loaded: in the model its elements share memory (register a copy of what "
        "expand() returned, its clone())");
  CHECK(net.first->weight.equal(before));
}

TEST_CASE("model_state: a tensor whose elements share memory may be loaded if it has these values",
          "[runtime]") {
  Net net(2);
  net.register_buffer("scale", at::full({1}, 3.0).expand({4}));
  Net other(2);
  other.register_buffer("scale", at::full({4}, 3.0));
  acc::load_state(net, acc::state_of(other), "f");
  CHECK(net.first->weight.equal(other.first->weight));
}

TEST_CASE("model_state: a sparse tensor is named, and nothing is loaded", "[runtime]") {
  Net net(2);
  net.register_buffer("mask", at::ones({2, 2}).to_sparse());
  const at::Tensor before = net.first->weight.detach().clone();
  Net other(2);
  other.register_buffer("mask", at::ones({2, 2}));
  CHECK(
      acc::test::error_of([&] { acc::load_state(net, acc::state_of(other), "f"); }) ==
      "f: tensor 'mask' cannot be loaded: in the model it is sparse (register what its to_dense() returns)");
  CHECK(net.first->weight.equal(before));
}

TEST_CASE(
    "model_state: without strict, a backbone is loaded under a new head, and unmatched names are returned",
    "[runtime]") {
  Net net(2);
  acc::NamedTensors state = acc::state_of(Net(2));
  state["head.weight"] = state["norm.weight"];
  state.erase("norm.weight");
  const at::Tensor initial_weight = net.norm->weight.detach().clone();
  const acc::IncompatibleKeys keys = acc::load_state(net, state, "f", /*strict=*/false);
  CHECK(keys == acc::IncompatibleKeys{{"norm.weight"}, {"head.weight"}});
  CHECK(net.first->weight.equal(state["first.weight"]));
  CHECK(net.norm->weight.equal(initial_weight));
  // Shapes must match also without strict.
  state["first.bias"] = acc::test::numbers({1, 2, 3}, {3}, at::kFloat);
  CHECK_THROWS_AS(acc::load_state(net, state, "f", /*strict=*/false), acc::Error);
}

TEST_CASE("model_state: the order is that of Python's state_dict", "[runtime]") {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : acc::ordered_state_of(Net(2))) names.push_back(name);
  CHECK(names == std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias",
                                          "norm.running_mean", "norm.running_var",
                                          "norm.num_batches_tracked"});
}

TEST_CASE("model_state: names of Python's DistributedDataParallel are accepted", "[runtime]") {
  const Net saved(2);
  acc::NamedTensors prefixed;
  for (const auto& [name, tensor] : acc::state_of(saved)) prefixed["module." + name] = tensor;
  Net loaded(2);
  acc::load_state(loaded, prefixed, "f");
  CHECK(loaded.first->weight.equal(saved.first->weight));
}

TEST_CASE("model_state: tensors of one memory are kept once, under their first name", "[runtime]") {
  const at::Tensor weight = at::ones({2, 3});
  const auto kept = [](const acc::OrderedTensors& tensors) {
    std::string names;
    for (const auto& [name, tensor] : acc::detail::without_ties(tensors)) names += name;
    return names;
  };
  CHECK(kept({{"b", weight}, {"a", weight}, {"c", weight.view({2, 3})}}) == "b");
  CHECK(kept({{"a", weight}, {"b", weight.t()}, {"c", weight[0]}, {"d", weight[1]}, {"e", weight.clone()}}) ==
        "abcde");
  const at::Tensor none = at::ones({0});
  CHECK(kept({{"a", none}, {"b", none}}) == "ab");
  const at::Tensor sparse = weight.to_sparse();
  CHECK(kept({{"a", sparse}, {"b", sparse}}) == "ab");
}

TEST_CASE("model_state: a tied weight with two different values is an error, and nothing is loaded",
          "[runtime]") {
  struct Tied : torch::nn::Module {
    Tied() : weight(register_parameter("in", at::ones({2}))) { register_parameter("out", weight); }
    at::Tensor weight;
  };
  Tied net;
  const at::Tensor nan = acc::test::numbers({2, std::nan("")}, {2}, at::kFloat);
  CHECK(acc::test::error_of(
            [&] { acc::load_state(net, {{"in", at::ones({2}) * 2}, {"out", at::ones({2}) * 3}}, "f"); }) ==
        "f: tensors 'in' and 'out' differ, and the model has one weight for both (leave one of them out, or "
        "give the model two weights)");
  CHECK(net.weight.equal(at::ones({2})));
  acc::load_state(net, {{"in", nan}, {"out", nan.clone()}}, "f");
  CHECK(net.weight[0].item<float>() == 2);
  // Shards are compared before they are read.
  const at::Tensor unread = at::empty({2}, at::kMeta);
  CHECK(
      acc::detail::require_fitting(net, {{"in", unread}, {"out", unread.clone()}}, "f").missing_keys.empty());
}

}  // namespace model_state_test
