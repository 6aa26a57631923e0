// SPDX-License-Identifier: Apache-2.0
// That several processes save and load shards is tested by runtime/sharded_training_test.py, with Python's
// accelerate by parity/sharded_states.
#include "acc/runtime/checkpoint/state_shards.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include "acc/base/files.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_group.hpp"
#include "support/torch_tensor.hpp"

namespace state_shards_test {

namespace {

namespace fs = std::filesystem;
using acc::test::error_of;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 3)
      : linear(register_module("linear", torch::nn::Linear(width, 4))),
        norm(register_module("norm", torch::nn::BatchNorm1d(4))) {}
  torch::nn::Linear linear;
  torch::nn::BatchNorm1d norm;
};

struct Training {
  std::shared_ptr<NetImpl> net;
  torch::optim::Adam optimizer;

  explicit Training(std::int64_t width = 3)
      : net(std::make_shared<NetImpl>(width)),
        optimizer(net->parameters(), torch::optim::AdamOptions(0.01)) {}

  acc::CheckpointContent content() { return {.models = {net.get()}, .optimizers = {&optimizer}}; }

  void step() {
    net->norm->forward(net->linear->forward(at::randn({5, 3})))
        .square()
        .mul(at::randn({5, 4}))
        .mean()
        .backward();
    optimizer.step();
  }

  at::Tensor average() {
    void* key = net->linear->weight.unsafeGetTensorImpl();
    return static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(key)).exp_avg();
  }
};

void save(const fs::path& folder, const acc::CheckpointContent& content) {
  acc::save_checkpoint(folder, content, {}, {.in_shards = true});
}

}  // namespace

TEST_CASE("checkpoint shards: a process alone writes and reads accelerate's folders", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  acc::set_seed(1);
  Training training;
  training.step();
  acc::CheckpointContent content = training.content();
  content.initial_rates = {{0.25}};
  save(folder, content);
  CHECK_FALSE(fs::exists(folder / "model.safetensors"));
  CHECK_FALSE(fs::exists(folder / "optimizer.bin"));
  const acc::DcpMetadata model = acc::read_dcp_metadata(folder / "pytorch_model_fsdp_0");
  CHECK(model.tensors.contains("model.linear.weight"));
  CHECK(model.tensors.at("model.norm.num_batches_tracked").shape.empty());
  const acc::DcpMetadata optimizer = acc::read_dcp_metadata(folder / "optimizer_0");
  CHECK(optimizer.tensors.contains("optimizer.state.linear.weight.exp_avg"));
  CHECK(optimizer.objects.contains("optimizer.param_groups.0.initial_lr"));

  Training loaded;
  acc::load_checkpoint(folder, loaded.content(), 0);
  CHECK(loaded.net->linear->weight.equal(training.net->linear->weight));
  CHECK(loaded.net->norm->running_var.equal(training.net->norm->running_var));
  CHECK(loaded.net->norm->num_batches_tracked.item<int>() == 1);
  CHECK(loaded.average().equal(training.average()));
}

TEST_CASE("checkpoint shards: what does not fit is named, and nothing is changed", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  Training training;
  training.step();
  save(folder, training.content());
  Training wider(5);
  const at::Tensor before = wider.net->linear->weight.detach().clone();
  CHECK(error_of([&] { acc::load_checkpoint(folder, wider.content(), 0); }) ==
        (folder / "pytorch_model_fsdp_0").string() +
            ": tensor 'linear.weight' is [4, 3], the model's is [4, 5]");
  CHECK(wider.net->linear->weight.equal(before));

  Training loaded;
  const at::Tensor loaded_weight = loaded.net->linear->weight.detach().clone();
  fs::rename(folder / "optimizer_0" / "__0_0.distcp", folder / "elsewhere");
  CHECK(error_of([&] {
          acc::load_checkpoint(folder, loaded.content(), 0);
        }).find("__0_0.distcp: cannot be read") != std::string::npos);
  CHECK(loaded.net->linear->weight.equal(loaded_weight));
  acc::replace_file(folder / "optimizer.bin", "");
  CHECK(error_of([&] { acc::load_checkpoint(folder, loaded.content(), 0); }) ==
        folder.string() +
            ": has both optimizer_0 and optimizer.bin (remove the one that is not to be loaded)");
}

TEST_CASE("checkpoint shards: a parameter without elements is saved, and not missed where it is not",
          "[runtime]") {
  struct Net : torch::nn::Module {
    Net() {
      register_parameter("weight", at::full({4}, 1.0));
      register_parameter("none", at::zeros({0, 3}));
    }
    const at::Tensor& weight() { return named_parameters()["weight"]; }
  };
  const fs::path folder = acc::test::temporary_folder();
  const auto sharded = std::make_shared<Net>();
  const auto whole = std::make_shared<Net>();
  acc::detail::ShardedModule module(sharded, acc::test::lone_group(), {});
  save(folder, {.models = {sharded.get()}});
  const fs::path shards = acc::detail::folder_of_model_shards(folder, 0);
  CHECK(acc::read_dcp_metadata(shards).tensors.at("model.none").shape == std::vector<std::int64_t>{0, 3});
  const fs::path earlier = folder / "earlier";
  acc::save_sharded(earlier, {.ranges = {acc::whole_range({"model", "weight"}, at::full({4}, 2.0))}}, {});
  for (const auto& [path, value] : {std::pair(earlier, 2), std::pair(shards, 1)}) {
    for (const auto& net : {sharded, whole}) {
      const acc::detail::PlannedModel planned = acc::detail::plan_model_shards(*net, path);
      CHECK(planned.keys == acc::IncompatibleKeys());
      planned.load();
    }
    CHECK(module.units().front()->shard().narrow(0, 0, 4).eq(value).all().item<bool>());
    CHECK(whole->weight().eq(value).all().item<bool>());
  }
}

TEST_CASE("checkpoint shards: names that only one side has are told, and are errors if strict", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  Training training;
  save(folder, training.content());
  const fs::path shards = acc::detail::folder_of_model_shards(folder, 0);
  CHECK(acc::detail::folder_of_model_shards(shards, 0) == shards);
  CHECK(acc::detail::folder_of_model_shards(folder / "optimizer_1", 0).empty());
  const auto linear = training.net->linear;
  CHECK(error_of([&] { acc::detail::plan_model_shards(*linear, shards); }).find("linear.weight") !=
        std::string::npos);
  torch::nn::BatchNorm1d other(4);
  struct HolderImpl : torch::nn::Module {
    explicit HolderImpl(const torch::nn::BatchNorm1d& norm) {
      register_module("norm", norm);
      register_module("more", torch::nn::Linear(1, 1));
    }
  };
  HolderImpl holder(other);
  {
    const at::NoGradGuard no_grad;
    training.net->norm->weight.fill_(3);
  }
  save(folder, training.content());
  const acc::detail::PlannedModel planned = acc::detail::plan_model_shards(holder, shards, /*strict=*/false);
  CHECK(planned.keys.missing_keys == std::vector<std::string>{"more.bias", "more.weight"});
  CHECK(planned.keys.unexpected_keys == std::vector<std::string>{"linear.bias", "linear.weight"});
  planned.load();
  const std::string file = GENERATE("model.safetensors", "pytorch_model.bin");
  acc::replace_file(folder / file, "");
  CHECK(error_of([&] { acc::detail::folder_of_model_shards(folder, 0); }).find("has both") !=
        std::string::npos);
  CHECK(other->weight.eq(3).all().item<bool>());
}

TEST_CASE("checkpoint shards: an optimizer of several models, or of none, has no names there", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  Training first;
  Training second;
  std::vector<at::Tensor> both = first.net->parameters();
  both.push_back(second.net->linear->weight);
  torch::optim::Adam of_both(both);
  const std::string text =
      "optimizer 0: its parameters are not those of one prepared model, so they have no names in a "
      "checkpoint (give each model an optimizer of its own; StateDictType::full needs no names)";
  CHECK(error_of([&] {
          save(folder / "one", {.models = {first.net.get(), second.net.get()}, .optimizers = {&of_both}});
        }) == text);
  torch::optim::Adam of_none({at::full({2}, 1.0).requires_grad_()});
  CHECK(error_of([&] { save(folder / "two", {.models = {first.net.get()}, .optimizers = {&of_none}}); }) ==
        text);
  CHECK(fs::is_empty(folder));
}

}  // namespace state_shards_test
