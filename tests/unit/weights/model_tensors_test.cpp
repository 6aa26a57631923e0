// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/model_tensors.hpp"

#include <map>

#include "acc/weights/memory_estimate.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/recordings.hpp"

namespace model_tensors_test {

using acc::launcher::tensors_of_config;
using nlohmann::json;

TEST_CASE("model_tensors: a small llama has the tensors that were recorded", "[weights]") {
  const json recorded = acc::test::recording("estimate_llama_tiny").at("tensors");
  std::map<std::string, std::vector<std::int64_t>> expected;
  for (const auto& [name, entry] : recorded.items()) {
    if (entry[2] == "param") expected[name] = entry[0].get<std::vector<std::int64_t>>();
  }
  const auto shape = [&](const char* name) { return expected.at(name); };
  const std::int64_t head = shape("layers.0.self_attn.q_proj.weight")[0] / 4;
  const json config = {{"model_type", "llama"},
                       {"vocab_size", shape("embed_tokens.weight")[0]},
                       {"hidden_size", shape("embed_tokens.weight")[1]},
                       {"intermediate_size", shape("layers.0.mlp.up_proj.weight")[0]},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", shape("layers.0.self_attn.k_proj.weight")[0] / head},
                       {"num_hidden_layers", 2}};
  std::map<std::string, std::vector<std::int64_t>> ours;
  for (const acc::TensorInfo& tensor : tensors_of_config(config, "config.json"))
    ours[tensor.name] = tensor.shape;
  CHECK(ours == expected);
}

TEST_CASE("model_tensors: BERT and GPT-2 have accelerate's sizes", "[weights]") {
  const json bert = {{"model_type", "bert"},      {"vocab_size", 30522},
                     {"hidden_size", 768},        {"num_hidden_layers", 12},
                     {"intermediate_size", 3072}, {"max_position_embeddings", 512}};
  CHECK(acc::launcher::model_size(tensors_of_config(bert, "c"), bert) ==
        acc::launcher::ModelSize{437937152, 95356928, 0});
  const json gpt2 = {
      {"model_type", "gpt2"}, {"vocab_size", 50257}, {"n_embd", 768}, {"n_layer", 12}, {"n_positions", 1024}};
  CHECK(acc::launcher::model_size(tensors_of_config(gpt2, "c"), gpt2) ==
        acc::launcher::ModelSize{497759232, 154389504, 0});
}

TEST_CASE("model_tensors: other families and missing sizes are refused", "[weights]") {
  const auto error = [](const json& config) {
    return acc::test::error_of([&] { tensors_of_config(config, "config.json"); });
  };
  CHECK(
      error({{"model_type", "t5"}}) ==
      "config.json: describes a model of the family 't5', which acc cannot size from it (put its safetensors "
      "files beside it: their headers are enough)");
  CHECK(error({{"model_type", "gpt2"}}) == "config.json: has no n_embd");
}

TEST_CASE("model_tensors: values of another type, and models that nobody has, are refused", "[weights]") {
  const auto error = [](json changes) {
    json config = {{"model_type", "llama"},   {"hidden_size", 8},       {"num_attention_heads", 2},
                   {"intermediate_size", 16}, {"num_hidden_layers", 2}, {"vocab_size", 10}};
    config.update(changes);
    return acc::test::error_of([&] { tensors_of_config(config, "config.json"); });
  };
  CHECK(error(json::object()) == "no error");
  CHECK(acc::test::error_of([] { tensors_of_config(json::array(), "config.json"); }) ==
        "config.json: is not a JSON object");
  CHECK(error({{"model_type", 7}}) == "config.json: 'model_type' is 7, not a text");
  CHECK(error({{"attention_bias", "no"}}) == "config.json: 'attention_bias' is \"no\", not true or false");
  CHECK(error({{"attention_bias", nullptr}}) == "no error");
  const std::string range = ", not a whole number from 1 to 2147483647";
  CHECK(error({{"hidden_size", "8"}}) == "config.json: 'hidden_size' is \"8\"" + range);
  CHECK(error({{"hidden_size", {8}}}) == "config.json: 'hidden_size' is [8]" + range);
  CHECK(error({{"vocab_size", 1e300}}) == "config.json: 'vocab_size' is 1e+300" + range);
  CHECK(error({{"num_attention_heads", 0}}) == "config.json: 'num_attention_heads' is 0" + range);
  CHECK(error({{"num_hidden_layers", 2'000'000'000}}) ==
        "config.json: 'num_hidden_layers' is 2000000000, not a whole number from 1 to 100000");
  constexpr std::int64_t kLarge = 2'000'000'000;
  CHECK(error({{"hidden_size", kLarge}, {"head_dim", kLarge}, {"num_attention_heads", kLarge}}) ==
        "config.json: describes more parameters than acc can count");
}

}  // namespace model_tensors_test
