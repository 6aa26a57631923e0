// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/unit_plan.hpp"

#include <ATen/ops/ones.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/tensors/meta_device.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace unit_plan_test {

using acc::detail::find_difference;
using acc::detail::is_class;
using acc::detail::plan_units;

namespace {

struct LayerImpl : torch::nn::Module {
  LayerImpl() : fc(register_module("fc", torch::nn::Linear(2, 2))) {}
  torch::nn::Linear fc;
};
TORCH_MODULE(Layer);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    scale = register_parameter("scale", at::ones({1}));
    first = register_module("first", Layer());
    second = register_module("second", Layer());
    head = register_module("head", torch::nn::Linear(2, 3));
  }
  at::Tensor scale;
  Layer first{nullptr};
  Layer second{nullptr};
  torch::nn::Linear head{nullptr};
};

using Names = std::vector<std::string>;

// "unit: parameter parameter"
Names plan_of(const torch::nn::Module& module, const acc::FsdpOptions& options) {
  Names lines;
  for (const auto& unit : plan_units(module, options)) {
    lines.push_back(unit.name + ":");
    for (const auto& parameter : unit.parameters) lines.back() += " " + parameter.name;
  }
  return lines;
}

}  // namespace

TEST_CASE("unit_plan: a class is recognized by its last name, with Impl and without", "[runtime]") {
  CHECK(is_class("BlockImpl", "Block"));
  CHECK(is_class("demo::BlockImpl", "Block"));
  CHECK(is_class("(anonymous namespace)::BlockImpl", "BlockImpl"));
  CHECK(is_class("demo::Block", "demo::Block"));
  CHECK_FALSE(is_class("demo::MyBlockImpl", "Block"));
  CHECK_FALSE(is_class("demo::BlockImpl", "other::Block"));
}

TEST_CASE("unit_plan: named classes are units, and the rest is the root", "[runtime]") {
  const NetImpl net;
  CHECK(plan_of(net, {.transformer_cls_to_wrap = {"Layer"}}) ==
        Names{": scale head.weight head.bias", "first: first.fc.weight first.fc.bias",
              "second: second.fc.weight second.fc.bias"});
  CHECK(plan_of(net, {}) == Names{": scale first.fc.weight first.fc.bias second.fc.weight second.fc.bias "
                                  "head.weight head.bias"});
}

TEST_CASE("unit_plan: of modules inside of each other the innermost has the parameters", "[runtime]") {
  const NetImpl net;
  CHECK(plan_of(net, {.transformer_cls_to_wrap = {"Layer", "Linear"}}) ==
        Names{": scale", "first.fc: first.fc.weight first.fc.bias",
              "second.fc: second.fc.weight second.fc.bias", "head: head.weight head.bias"});
}

TEST_CASE("unit_plan: by size, modules with more parameters than the minimum are units", "[runtime]") {
  const NetImpl net;
  CHECK(plan_of(net, {.min_num_params = 8}) ==
        Names{": scale first.fc.weight first.fc.bias second.fc.weight second.fc.bias",
              "head: head.weight head.bias"});
}

TEST_CASE("unit_plan: parameters that several units share belong to the root, once", "[runtime]") {
  NetImpl net;
  net.second->replace_module("fc", net.first->fc);
  CHECK(plan_of(net, {.transformer_cls_to_wrap = {"Layer"}}) ==
        Names{": scale first.fc.weight first.fc.bias head.weight head.bias"});
}

TEST_CASE("unit_plan: ignored modules must be frozen, and are left out", "[runtime]") {
  NetImpl net;
  const acc::FsdpOptions options{.transformer_cls_to_wrap = {"Layer"}, .ignored_modules = "head|second.*"};
  CHECK(acc::test::error_of([&] { plan_units(net, options); }) ==
        "parameter 'second.fc.weight': is in an ignored module and is trained, but nothing would average its "
        "gradients (freeze it with requires_grad_(false), or do not ignore its module)");
  for (const auto& item : net.named_parameters())
    if (!item.key().starts_with("first") && item.key() != "scale") item.value().set_requires_grad(false);
  CHECK(plan_of(net, options) == Names{": scale", "first: first.fc.weight first.fc.bias"});
  const acc::MetaDevice meta;
  NetImpl without_values;
  for (const at::Tensor& parameter : without_values.parameters()) parameter.set_requires_grad(false);
  CHECK(acc::test::error_of([&] { plan_units(without_values, options); }) ==
        "parameter 'second.fc.weight': is on the meta device, and in an ignored module, which is not sharded "
        "(make it on the CPU, or do not ignore its module)");
}

TEST_CASE("unit_plan: an embedding with sparse gradients must be frozen", "[runtime]") {
  struct WordsImpl : torch::nn::Module {
    WordsImpl()
        : words(register_module("words",
                                torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(true)))) {}
    torch::nn::Embedding words;
  };
  const WordsImpl net;
  CHECK(
      acc::test::error_of([&] { plan_units(net, {}); }) ==
      "parameter 'words.weight': has sparse gradients, which are not averaged in shards (make the embedding "
      "without sparse(true), freeze it, or train without fsdp (--use_fsdp))");
  net.words->weight.set_requires_grad(false);
  CHECK(plan_of(net, {}) == Names{": words.weight"});
}

TEST_CASE("unit_plan: ranks that divide a model differently are told the first difference", "[runtime]") {
  const NetImpl net;
  const auto described = [&](const acc::FsdpOptions& options) {
    return acc::detail::describe_plan(plan_units(net, options), options);
  };
  const auto layers = described({.transformer_cls_to_wrap = {"Layer"}});
  CHECK_FALSE(find_difference({layers, layers, layers}));
  const auto message = [](const std::vector<std::vector<std::string>>& by_rank) {
    return std::string(find_difference(by_rank).value().what());
  };
  const std::string begin = "the processes divide the model differently: rank 0 has ";
  CHECK(message({layers, layers, described({})})
            .starts_with(begin + "the root with 3 parameters of 10 elements, rank 2 has the root with 7 "
                                 "parameters of 22 elements ("));
  CHECK(message({layers, {layers.begin(), layers.end() - 1}})
            .starts_with(begin + "'second' with 2 parameters of 6 elements, rank 1 has no more units ("));
  CHECK(message({layers, described({.reshard_after_forward = false, .transformer_cls_to_wrap = {"Layer"}})})
            .starts_with(begin + "parameters that are freed after forward, rank 1 has parameters that stay"));
}

TEST_CASE("unit_plan: a class that is not there and a type that cannot be sharded are errors", "[runtime]") {
  NetImpl net;
  CHECK(
      acc::test::error_of([&] { plan_units(net, {.transformer_cls_to_wrap = {"Encoder"}}); })
          .starts_with("transformer_cls_to_wrap: the model has no module of the class 'Encoder' (its classes "
                       "are "));
  net.head->to(at::kDouble);
  CHECK(acc::test::error_of([&] {
          plan_units(net, {});
        }).starts_with("parameter 'head.weight': is Double, and only dense float32 parameters can be"));
}

}  // namespace unit_plan_test
