// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_weights.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <limits>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace model_weights_test {

TEST_CASE("model_weights: a saved model is loaded unchanged", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "model.safetensors";
  const auto made = [] { return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4)); };
  const torch::nn::Sequential saved = made();
  acc::save_model_file(*saved, file);
  torch::nn::Sequential loaded = made();
  REQUIRE_FALSE(acc::state_of(*loaded).at("0.weight").equal(acc::state_of(*saved).at("0.weight")));
  acc::load_state(*loaded, acc::read_safetensors(file).tensors, file);
  for (const auto& [name, tensor] : acc::state_of(*saved))
    CHECK(acc::state_of(*loaded).at(name).equal(tensor));
  CHECK(loaded->parameters().front().requires_grad());
}

TEST_CASE("model_weights: a tied weight is saved once and loaded under all its names", "[runtime]") {
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

TEST_CASE(
    "model_weights: a name that is not UTF-8 or a type that the format lacks is one error, and nothing is "
    "written",
    "[runtime]") {
  const auto folder = acc::test::temporary_folder();
  struct Odd : torch::nn::Module {
    Odd(const std::string& name, at::ScalarType type) { register_parameter(name, at::ones({2}).to(type)); }
  };
  const Odd latin("gr\xfc\xdf", at::kFloat);
  const Odd complex("phase", at::kComplexDouble);
  const std::string not_utf8 = "tensor 'gr\\xfc\\xdf': the name is not UTF-8, which names in files must be";
  for (const auto& save : {std::function<void(const Odd&)>(
                               [&](const Odd& net) { acc::save_model_file(net, folder / "m.safetensors"); }),
                           std::function<void(const Odd&)>(
                               [&](const Odd& net) { acc::save_weights(net, folder / "w", 1U << 20U); })}) {
    CHECK(acc::test::error_of([&] { save(latin); }).starts_with(not_utf8));
    CHECK(acc::test::error_of([&] {
            save(complex);
          }).starts_with("tensor 'phase': ComplexDouble cannot be written to a safetensors file"));
  }
  CHECK(std::filesystem::is_empty(folder));
}

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> tensors_of(const std::vector<acc::detail::WeightShard>& shards) {
  std::vector<std::string> lines;
  for (const acc::detail::WeightShard& shard : shards) {
    std::string line = shard.name + ":";
    for (const auto& [name, tensor] : shard.tensors) line += " " + name;
    lines.push_back(line);
  }
  return lines;
}

std::string error_of(const fs::path& path) {
  return acc::test::error_of([&] { acc::read_weights(path); });
}

}  // namespace

TEST_CASE("model_weights: shards are filled in order, and a large tensor has one of its own", "[runtime]") {
  const acc::OrderedTensors tensors = {
      {"b", at::ones({2})}, {"a", at::ones({1})}, {"large", at::ones({9})}, {"c", at::ones({2})}};
  CHECK(tensors_of(acc::detail::plan_shards(tensors, 16)) ==
        std::vector<std::string>{"model-00001-of-00003.safetensors: large",
                                 "model-00002-of-00003.safetensors: b a",
                                 "model-00003-of-00003.safetensors: c"});
  CHECK(tensors_of(acc::detail::plan_shards(tensors, 100)) ==
        std::vector<std::string>{"model.safetensors: b a large c"});
}

TEST_CASE("model_weights: the index names the file of each tensor, by name", "[runtime]") {
  const auto shards = acc::detail::plan_shards({{"b", at::ones({2})}, {"a", at::ones({2})}}, 8);
  CHECK(acc::detail::shard_index(shards) ==
        "{\n  \"metadata\": {\n    \"total_size\": 16\n  },\n  \"weight_map\": {\n"
        "    \"a\": \"model-00002-of-00002.safetensors\",\n"
        "    \"b\": \"model-00001-of-00002.safetensors\"\n  }\n}\n");
  CHECK(acc::detail::shard_index(acc::detail::plan_shards({{"a", at::ones({2})}}, 8)).empty());
}

TEST_CASE("model_weights: a save with other shards removes those of the one before", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  const torch::nn::Linear net(8, 4);
  acc::replace_file(folder / "config.json", std::string_view("{}"));
  acc::save_weights(*net, folder, kUnlimited);
  CHECK(names_in(folder) == std::vector<std::string>{"config.json", "model.safetensors"});
  acc::save_weights(*net, folder, 100);
  CHECK(names_in(folder) == std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors",
                                                     "model-00002-of-00002.safetensors",
                                                     "model.safetensors.index.json"});
  CHECK(acc::read_weights(folder).at("weight").equal(net->weight));
  acc::save_weights(*net, folder, kUnlimited);
  CHECK(names_in(folder) == std::vector<std::string>{"config.json", "model.safetensors"});
}

TEST_CASE("model_weights: state_dicts of torch.save are read, whole and in shards", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  const at::Tensor one = at::randn({2});
  acc::write_pt_file(folder / "pytorch_model.bin", acc::PtDict{{"w", one}});
  CHECK(acc::read_weights(folder).at("w").equal(one));
  CHECK(acc::read_weights(folder / "pytorch_model.bin").at("w").equal(one));
  fs::rename(folder / "pytorch_model.bin", folder / "part.bin");
  acc::replace_file(folder / "pytorch_model.bin.index.json",
                    std::string_view(R"({"weight_map":{"w":"part.bin"}})"));
  CHECK(acc::read_weights(folder).at("w").equal(one));
}

TEST_CASE("model_weights: what is missing or wrong is named", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  CHECK(error_of(folder).starts_with(folder.string() + ": holds no weights"));
  const fs::path index = folder / "model.safetensors.index.json";
  const auto with_index = [&](std::string_view text) {
    acc::replace_file(index, text);
    return error_of(folder);
  };
  CHECK(with_index("[]") == index.string() + ": is not an index of weights: it has no weight_map");
  CHECK(with_index(R"({"weight_map":{"w":"../x"}})") ==
        index.string() + ": does not name a file for the tensor 'w'");
  CHECK(with_index(R"({"weight_map":{"w":"x"}})") == index.string() + ": the file x is missing");
  acc::write_safetensors(folder / "x.safetensors", {.tensors = {{"v", at::ones({1})}}});
  CHECK(with_index(R"({"weight_map":{"w":"x.safetensors"}})") ==
        index.string() + ": the tensor 'w' is not in x.safetensors");
  const fs::path file = folder / "training.pt";
  acc::write_pt_file(file, acc::PtDict{{"epoch", 3}});
  CHECK(error_of(file) ==
        file.string() + ": is not a state_dict: 'epoch' is not a tensor (save model.state_dict() alone)");
}

}  // namespace model_weights_test
