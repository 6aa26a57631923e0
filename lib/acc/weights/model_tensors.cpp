// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/model_tensors.hpp"

#include <fmt/format.h>

#include <string>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;

// Adds up the tensors of one model.
class Family {
 public:
  Family(const Json& config, const std::filesystem::path& file) : config_(config), file_(file) {}

  std::vector<TensorInfo> tensors() {
    const std::string type = config_.value("model_type", "");
    if (type == "llama" || type == "mistral" || type == "qwen2") {
      decoder(type == "qwen2");
    } else if (type == "gpt2") {
      gpt2();
    } else if (type == "bert") {
      bert();
    } else {
      throw Error(
          {.kind = ErrorKind::config,
           .what = fmt::format("describes a model of the family '{}', which acc cannot size from it", type),
           .where = file_.string(),
           .hint = "put its safetensors files beside it: their headers are enough"});
    }
    return std::move(tensors_);
  }

 private:
  std::int64_t size(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || !found->is_number_integer() || found->get<std::int64_t>() < 1) {
      throw Error(
          {.kind = ErrorKind::config, .what = fmt::format("has no {}", key), .where = file_.string()});
    }
    return found->get<std::int64_t>();
  }
  std::int64_t size(const char* key, std::int64_t default_value) const {
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? default_value : size(key);
  }

  void add(const std::string& name, Shape shape) {
    tensors_.push_back({.name = name, .shape = std::move(shape)});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void norm(const std::string& name, std::int64_t width) { linear(name, width, 1, true); }

  // Rotary positions, gated feed-forward, norms without bias.
  void decoder(bool attention_bias) {
    const std::int64_t width = size("hidden_size");
    const std::int64_t heads = size("num_attention_heads");
    const std::int64_t head = size("head_dim", width / heads);
    const std::int64_t kv = head * size("num_key_value_heads", heads);
    const std::int64_t inner = size("intermediate_size");
    const bool every_bias = config_.value("attention_bias", false);
    const bool mlp_bias = config_.value("mlp_bias", false);
    add("embed_tokens.weight", {size("vocab_size"), width});
    for (std::int64_t i = 0; i < size("num_hidden_layers"); ++i) {
      const std::string layer = fmt::format("layers.{}.", i);
      linear(layer + "self_attn.q_proj", head * heads, width, attention_bias || every_bias);
      linear(layer + "self_attn.k_proj", kv, width, attention_bias || every_bias);
      linear(layer + "self_attn.v_proj", kv, width, attention_bias || every_bias);
      linear(layer + "self_attn.o_proj", width, head * heads, every_bias);
      linear(layer + "mlp.gate_proj", inner, width, mlp_bias);
      linear(layer + "mlp.up_proj", inner, width, mlp_bias);
      linear(layer + "mlp.down_proj", width, inner, mlp_bias);
      add(layer + "input_layernorm.weight", {width});
      add(layer + "post_attention_layernorm.weight", {width});
    }
    add("norm.weight", {width});
  }

  void gpt2() {
    const std::int64_t width = size("n_embd");
    const std::int64_t inner = size("n_inner", 4 * width);
    add("wte.weight", {size("vocab_size"), width});
    add("wpe.weight", {size("n_positions"), width});
    for (std::int64_t i = 0; i < size("n_layer"); ++i) {
      const std::string layer = fmt::format("h.{}.", i);
      norm(layer + "ln_1", width);
      linear(layer + "attn.c_attn", 3 * width, width, true);
      linear(layer + "attn.c_proj", width, width, true);
      norm(layer + "ln_2", width);
      linear(layer + "mlp.c_fc", inner, width, true);
      linear(layer + "mlp.c_proj", width, inner, true);
    }
    norm("ln_f", width);
  }

  void bert() {
    const std::int64_t width = size("hidden_size");
    const std::int64_t inner = size("intermediate_size");
    add("embeddings.word_embeddings.weight", {size("vocab_size"), width});
    add("embeddings.position_embeddings.weight", {size("max_position_embeddings"), width});
    add("embeddings.token_type_embeddings.weight", {size("type_vocab_size", 2), width});
    norm("embeddings.LayerNorm", width);
    for (std::int64_t i = 0; i < size("num_hidden_layers"); ++i) {
      const std::string layer = fmt::format("encoder.layer.{}.", i);
      for (const char* part : {"query", "key", "value"})
        linear(layer + "attention.self." + part, width, width, true);
      linear(layer + "attention.output.dense", width, width, true);
      norm(layer + "attention.output.LayerNorm", width);
      linear(layer + "intermediate.dense", inner, width, true);
      linear(layer + "output.dense", width, inner, true);
      norm(layer + "output.LayerNorm", width);
    }
    linear("pooler.dense", width, width, true);
  }

  const Json& config_;
  const std::filesystem::path& file_;
  std::vector<TensorInfo> tensors_ = {};
};

}  // namespace

std::vector<TensorInfo> tensors_of_config(const Json& config, const std::filesystem::path& file) {
  return Family(config, file).tensors();
}

}  // namespace acc::launcher
