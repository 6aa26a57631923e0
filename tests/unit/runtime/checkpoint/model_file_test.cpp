// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_file.hpp"

#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

struct Net : torch::nn::Module {
  explicit Net(std::int64_t width)
      : first(register_module("first", torch::nn::Linear(3, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))) {}

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
};

}  // namespace

TEST_CASE("model_file: the names are those of Python's state_dict", "[runtime]") {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : acc::state_of(Net(2))) names.push_back(name);
  CHECK(names == std::vector<std::string>{"first.bias", "first.weight", "norm.bias",
                                          "norm.num_batches_tracked", "norm.running_mean", "norm.running_var",
                                          "norm.weight"});
}

TEST_CASE("model_file: a saved model is loaded as it was", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "model.safetensors";
  const Net saved(4);
  acc::save_model_file(saved, file);
  Net loaded(4);
  REQUIRE_FALSE(loaded.first->weight.equal(saved.first->weight));
  acc::load_state(loaded, acc::read_safetensors(file).tensors, file);
  for (const auto& [name, tensor] : acc::state_of(saved)) CHECK(acc::state_of(loaded).at(name).equal(tensor));
  CHECK(loaded.first->weight.requires_grad());
}

TEST_CASE("model_file: everything that does not match is in one error, and nothing is loaded", "[runtime]") {
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

TEST_CASE("model_file: a backbone goes under a new head, and the names that only one has are told",
          "[runtime]") {
  Net net(2);
  acc::NamedTensors state = acc::state_of(Net(2));
  state["head.weight"] = state["norm.weight"];
  state.erase("norm.weight");
  const at::Tensor kept = net.norm->weight.detach().clone();
  const acc::IncompatibleKeys keys = acc::load_state(net, state, "f", /*strict=*/false);
  CHECK(keys == acc::IncompatibleKeys{{"norm.weight"}, {"head.weight"}});
  CHECK(net.first->weight.equal(state["first.weight"]));
  CHECK(net.norm->weight.equal(kept));
  // A shape is no matter of names.
  state["first.bias"] = acc::test::numbers({1, 2, 3}, {3}, at::kFloat);
  CHECK_THROWS_AS(acc::load_state(net, state, "f", /*strict=*/false), acc::Error);
}

TEST_CASE("model_file: the order is that of Python's state_dict", "[runtime]") {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : acc::ordered_state_of(Net(2))) names.push_back(name);
  CHECK(names == std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias",
                                          "norm.running_mean", "norm.running_var",
                                          "norm.num_batches_tracked"});
}

TEST_CASE("model_file: names of Python's DistributedDataParallel fit", "[runtime]") {
  const Net saved(2);
  acc::NamedTensors prefixed;
  for (const auto& [name, tensor] : acc::state_of(saved)) prefixed["module." + name] = tensor;
  Net loaded(2);
  acc::load_state(loaded, prefixed, "f");
  CHECK(loaded.first->weight.equal(saved.first->weight));
}

TEST_CASE("model_file: a tied weight is saved once and loaded under all its names", "[runtime]") {
  struct Tied : torch::nn::Module {
    Tied() : weight(register_parameter("in", at::randn({2, 3}))) { register_parameter("out", weight); }
    at::Tensor weight;
  };
  const Tied saved;
  const auto file = acc::test::temporary_folder() / "model.safetensors";
  acc::save_model_file(saved, file);
  const acc::NamedTensors written = acc::read_safetensors(file).tensors;
  CHECK(written.contains("in"));
  CHECK_FALSE(written.contains("out"));
  Tied loaded;
  acc::load_state(loaded, written, file);
  CHECK(loaded.weight.equal(saved.weight));
}
