// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/memory_estimate.hpp"

#include "support/catch.hpp"
#include "support/recordings.hpp"

namespace memory_estimate_test {

using acc::TensorInfo;
using acc::launcher::model_size;
using acc::launcher::ModelSize;
using nlohmann::json;

TEST_CASE("memory_estimate: a recorded llama, its buffers included", "[weights]") {
  const json recorded = acc::test::recording("estimate_llama_tiny");
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : recorded.at("tensors").items()) {
    if (entry[2] == "param")
      tensors.push_back({.name = name, .shape = entry[0].get<std::vector<std::int64_t>>()});
  }
  const json config = {{"model_type", "llama"}, {"hidden_size", 64}, {"num_attention_heads", 4}};
  CHECK(model_size(tensors, config) == ModelSize{recorded.at("total_bytes").get<std::int64_t>(),
                                                 recorded.at("largest_bytes").get<std::int64_t>(), 0});
}

TEST_CASE("memory_estimate: a task's head is not part of the base model", "[weights]") {
  const std::vector<TensorInfo> tensors = {
      {.name = "model.embed.weight", .dtype = "BF16", .shape = {10, 2}},
      {.name = "model.layers.0.a.weight", .dtype = "BF16", .shape = {4}},
      {.name = "model.layers.0.b.weight", .dtype = "BF16", .shape = {30}},
      {.name = "lm_head.weight", .dtype = "BF16", .shape = {10, 2}}};
  CHECK(model_size(tensors, nullptr) == ModelSize{216, 136, 80});
}

TEST_CASE("memory_estimate: integer buffers keep their width", "[weights]") {
  const std::vector<TensorInfo> tensors = {
      {.name = "a.position_ids", .dtype = "I64", .shape = {4}, .begin = 0, .end = 32}};
  CHECK(model_size(tensors, nullptr) == ModelSize{32, 32, 0});
}

TEST_CASE("memory_estimate: values of another type beside weights say nothing", "[weights]") {
  const std::vector<TensorInfo> tensors = {{.name = "a.weight", .shape = {4}, .begin = 0, .end = 16}};
  const json odd = {{"model_type", 7}, {"num_attention_heads", "2"}, {"rope_theta", nullptr}};
  CHECK(model_size(tensors, odd) == ModelSize{16, 16, 0});
  const json huge = {{"model_type", "bert"}, {"max_position_embeddings", std::int64_t{1} << 62}};
  CHECK(model_size(tensors, huge) == ModelSize{16, 16, 0});
}

TEST_CASE("memory_estimate: each stage of ZeRO shards one part more", "[weights]") {
  const auto rows = acc::launcher::training_memory(100, 4);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == acc::launcher::TrainingMemory{"none (DDP)", 1600, 1600});
  CHECK(rows[1] == acc::launcher::TrainingMemory{"ZeRO 1", 1000, 700});
  CHECK(rows[2] == acc::launcher::TrainingMemory{"ZeRO 2, SHARD_GRAD_OP", 700, 550});
  CHECK(rows[3] == acc::launcher::TrainingMemory{"ZeRO 3, FULL_SHARD", 400, 400});
}

TEST_CASE("memory_estimate: what is outside of blocks is gathered together with the two largest",
          "[weights]") {
  const auto tensor = [](const char* name, std::int64_t size) {
    return acc::TensorInfo{.name = name, .shape = {size}};
  };
  std::vector<acc::TensorInfo> tensors = {tensor("embed.weight", 10), tensor("norm.weight", 2)};
  CHECK(acc::launcher::gathered_at_once(tensors) == 4 * 12);
  tensors.push_back(tensor("layers.0.a.weight", 3));
  CHECK(acc::launcher::gathered_at_once(tensors) == 4 * 15);
  tensors.push_back(tensor("layers.0.b.weight", 1));
  tensors.push_back(tensor("layers.1.a.weight", 6));
  tensors.push_back(tensor("layers.2.a.weight", 5));
  CHECK(acc::launcher::gathered_at_once(tensors) == 4 * (12 + 6 + 5));
}

TEST_CASE("estimate_table: sizes are written as Python rounds them", "[weights]") {
  CHECK(acc::launcher::size_text(1023) == "1023 bytes");
  CHECK(acc::launcher::size_text(1024) == "1.0 KB");
  CHECK(acc::launcher::size_text(875874304) == "835.3 MB");
  CHECK(acc::launcher::size_text(1751748608) == "1.63 GB");
  CHECK(acc::launcher::size_text(2.0 * (1ULL << 50U)) == "2.0 PB");
}

TEST_CASE("estimate_table: frames are drawn as recorded, whatever the title's length", "[weights]") {
  const auto recorded = acc::test::recording("estimate_tables");
  const auto rows = recorded.at("rows").get<std::vector<std::vector<std::string>>>();
  const auto headers = recorded.at("headers").get<std::vector<std::string>>();
  for (const auto& [title, table] : recorded.at("tables").items()) {
    INFO(title);
    CHECK(acc::launcher::framed_table(title, headers, rows) == table.get<std::string>() + "\n");
  }
}

TEST_CASE("estimate_table: a model's table is the recorded one", "[weights]") {
  const std::string name = GENERATE("bert_base", "llama_tiny");
  const auto recorded = acc::test::recording("estimate_" + name);
  const acc::launcher::ModelSize size{recorded.at("total_bytes").get<std::int64_t>(),
                                      recorded.at("largest_bytes").get<std::int64_t>(), 0};
  CHECK(acc::launcher::estimate_table(name, size, {"float32", "float16", "int8", "int4"}) ==
        recorded.at("table").get<std::string>());
}

}  // namespace memory_estimate_test
