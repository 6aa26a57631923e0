// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/materialize.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>

#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/tensors/meta_device.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace materialize_test {

namespace {

using acc::test::error_of;
using acc::test::TemporaryFolder;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(3, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    tied = register_parameter("tied", first->weight);
  }
  torch::nn::Linear first = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  at::Tensor tied;
};
TORCH_MODULE(Net);

Net on_meta() {
  const acc::MetaDevice meta;
  return Net();
}

std::filesystem::path saved(const Net& net, const TemporaryFolder& folder) {
  net->norm->running_mean.fill_(0.5);
  acc::save_model_file(*net, folder.path() / "model.safetensors");
  return folder.path() / "model.safetensors";
}

}  // namespace

TEST_CASE("materialize: a model on the meta device becomes the model that was saved", "[runtime]") {
  const TemporaryFolder folder;
  const Net net;
  const auto file = saved(net, folder);
  Net model = on_meta();
  acc::materialize(*model, file);
  for (const auto& [name, tensor] : acc::state_of(*model)) {
    INFO(name);
    CHECK(tensor.is_cpu());
    CHECK(tensor.equal(acc::state_of(*net).at(name)));
  }
  CHECK(model->first->weight.requires_grad());
  CHECK(model->tied.is_alias_of(model->first->weight));
  // The module's own members are the tensors that were filled.
  model->first->forward(at::randn({2, 3})).sum().backward();
  CHECK(model->tied.grad().defined());
}

TEST_CASE("materialize: a buffer whose elements share memory keeps the values that were saved", "[runtime]") {
  const TemporaryFolder folder;
  Net net;
  const at::Tensor scale = net->register_buffer("scale", at::full({1}, 3.0).expand({4}));
  const auto file = saved(net, folder);
  net->first->bias.detach().zero_();
  acc::materialize(*net, file);
  CHECK(scale.equal(at::full({4}, 3.0)));
  CHECK(net->first->bias.count_nonzero().item<std::int64_t>() == 4);
}

TEST_CASE("materialize: shards, an ordinary model, and the names of a DDP model are read, too", "[runtime]") {
  const TemporaryFolder folder;
  const Net net;
  acc::save_weights(*net, folder.path(), 64);
  REQUIRE(std::filesystem::exists(folder.path() / "model.safetensors.index.json"));
  Net ordinary;
  const void* memory = ordinary->tied.const_data_ptr();
  acc::materialize(*ordinary, folder.path());
  CHECK(ordinary->tied.equal(net->tied));
  CHECK(ordinary->tied.const_data_ptr() == memory);

  acc::Safetensors prefixed;
  for (const auto& [name, tensor] : acc::state_of(*net)) prefixed.tensors["module." + name] = tensor;
  acc::write_safetensors(folder.path() / "ddp.safetensors", prefixed);
  Net model = on_meta();
  acc::materialize(*model, folder.path() / "ddp.safetensors");
  CHECK(model->tied.equal(net->tied));
}

TEST_CASE("materialize: what is missing is named, and the model stays as it was", "[runtime]") {
  const TemporaryFolder folder;
  acc::write_safetensors(folder.path() / "m.safetensors", {.tensors = {{"first.weight", at::zeros({4, 3})}}});
  Net model = on_meta();
  const std::string error = error_of([&] { acc::materialize(*model, folder.path() / "m.safetensors"); });
  CHECK(error.find("has no tensor 'first.bias'") != std::string::npos);
  CHECK(error.find("has no tensor 'norm.running_var'") != std::string::npos);
  CHECK(model->tied.is_meta());
}

TEST_CASE("materialize: buffers alone, for a model that will be sharded", "[runtime]") {
  const TemporaryFolder folder;
  Net model = on_meta();
  acc::materialize(*model, saved(Net(), folder), {.parameters = false});
  CHECK(model->tied.is_meta());
  CHECK(model->norm->running_mean.equal(at::full({4}, 0.5)));
}

TEST_CASE("load_weight_ranges: only the ranges are filled", "[runtime]") {
  const TemporaryFolder folder;
  const at::Tensor weight = at::arange(12, at::kFloat).view({4, 3});
  acc::write_safetensors(folder.path() / "m.safetensors", {.tensors = {{"a", weight.to(at::kBFloat16)}}});
  const at::Tensor flat = at::zeros({10});
  const auto range = [&](const char* name, std::vector<std::int64_t> shape, std::int64_t begin) {
    return acc::TensorRange{
        .path = {name}, .shape = std::move(shape), .begin = begin, .elements = flat.narrow(0, 2, 5)};
  };
  const auto load = [&](const acc::TensorRange& one) {
    acc::load_weight_ranges(folder.path() / "m.safetensors", {one});
  };
  load(range("a", {4, 3}, 4));
  CHECK(flat.narrow(0, 2, 5).equal(at::arange(4, 9, at::kFloat)));
  CHECK(flat.sum().item<double>() == 4 + 5 + 6 + 7 + 8);
  const std::string file = (folder.path() / "m.safetensors").string();
  CHECK(error_of([&] { load(range("b", {4, 3}, 0)); }) == file + ": has no tensor 'b'");
  CHECK(error_of([&] { load(range("a", {12}, 0)); }) == file + ": tensor 'a' is [4, 3], the model's is [12]");
  CHECK(error_of([&] { load(range("a", {4, 3}, 8)); }) == "tensor 'a': a range ends at element 13 of 12");
}

}  // namespace materialize_test
