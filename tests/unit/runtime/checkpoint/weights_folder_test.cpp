// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/weights_folder.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include <limits>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/pt_writer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> tensors_of(const std::vector<acc::WeightShard>& shards) {
  std::vector<std::string> lines;
  for (const acc::WeightShard& shard : shards) {
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

TEST_CASE("weights folder: shards are filled in order, and a large tensor has one of its own", "[runtime]") {
  const acc::OrderedTensors tensors = {
      {"b", at::ones({2})}, {"a", at::ones({1})}, {"large", at::ones({9})}, {"c", at::ones({2})}};
  CHECK(tensors_of(acc::plan_shards(tensors, 16)) ==
        std::vector<std::string>{"model-00001-of-00003.safetensors: large",
                                 "model-00002-of-00003.safetensors: b a",
                                 "model-00003-of-00003.safetensors: c"});
  CHECK(tensors_of(acc::plan_shards(tensors, 100)) ==
        std::vector<std::string>{"model.safetensors: b a large c"});
}

TEST_CASE("weights folder: the index names the file of each tensor, by name", "[runtime]") {
  const auto shards = acc::plan_shards({{"b", at::ones({2})}, {"a", at::ones({2})}}, 8);
  CHECK(acc::shard_index(shards) ==
        "{\n  \"metadata\": {\n    \"total_size\": 16\n  },\n  \"weight_map\": {\n"
        "    \"a\": \"model-00002-of-00002.safetensors\",\n"
        "    \"b\": \"model-00001-of-00002.safetensors\"\n  }\n}\n");
  CHECK(acc::shard_index(acc::plan_shards({{"a", at::ones({2})}}, 8)).empty());
}

TEST_CASE("weights folder: a save of other sizes leaves nothing of the one before", "[runtime]") {
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

TEST_CASE("weights folder: state_dicts of torch.save are read, whole and in shards", "[runtime]") {
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

TEST_CASE("weights folder: what is missing or wrong is named", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  CHECK(error_of(folder).starts_with(folder.string() + ": holds no weights"));
  const fs::path index = folder / "model.safetensors.index.json";
  const auto with_index = [&](std::string_view text) {
    acc::replace_file(index, text);
    return error_of(folder);
  };
  CHECK(with_index("[]") == index.string() + ": is no index of weights: it has no weight_map");
  CHECK(with_index(R"({"weight_map":{"w":"../x"}})") ==
        index.string() + ": names no file for the tensor 'w'");
  CHECK(with_index(R"({"weight_map":{"w":"x"}})") == index.string() + ": the file x is missing");
  acc::write_safetensors(folder / "x.safetensors", {.tensors = {{"v", at::ones({1})}}});
  CHECK(with_index(R"({"weight_map":{"w":"x.safetensors"}})") ==
        index.string() + ": the tensor 'w' is not in x.safetensors");
  const fs::path file = folder / "training.pt";
  acc::write_pt_file(file, acc::PtDict{{"epoch", 3}});
  CHECK(error_of(file) ==
        file.string() + ": is no state_dict: 'epoch' is no tensor (save model.state_dict() alone)");
}
