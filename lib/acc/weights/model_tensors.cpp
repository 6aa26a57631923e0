// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/model_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;

constexpr auto kReplace = Json::error_handler_t::replace;

// Adds up the tensors of one model.
class Family {
 public:
  Family(const Json& config, const std::filesystem::path& file) : config_(config), file_(file) {}

  std::vector<TensorInfo> tensors() {
    const std::string type = value<std::string>("model_type", "a text");
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
  [[noreturn]] void refuse(const std::string& what) const { refuse_file(file_, what); }

  bool has(const char* key) const {
    const auto found = config_.find(key);
    return found != config_.end() && !found->is_null();
  }
  // What is not there is empty, or false.
  template <typename T>
  T value(const char* key, const char* kind) const {
    if (!has(key)) return {};
    const Json& found = config_.at(key);
    const bool fits = std::is_same_v<T, bool> ? found.is_boolean() : found.is_string();
    if (!fits) refuse(fmt::format("'{}' is {}, not {}", key, found.dump(-1, ' ', false, kReplace), kind));
    return found.get<T>();
  }
  bool truth(const char* key) const { return value<bool>(key, "true or false"); }

  // Two of them can be multiplied.
  std::int64_t size(const char* key, std::int64_t max = std::numeric_limits<std::int32_t>::max()) const {
    if (!has(key)) refuse(fmt::format("has no {}", key));
    const Json& number = config_.at(key);
    const bool fits = number.is_number_integer() && number >= 1 && number <= max;
    if (!fits)
      refuse(fmt::format("'{}' is {}, not a whole number from 1 to {}", key,
                         number.dump(-1, ' ', false, kReplace), max));
    return number.get<std::int64_t>();
  }
  std::int64_t size_or(const char* key, std::int64_t default_value) const {
    return has(key) ? size(key) : default_value;
  }
  std::int64_t layers(const char* key) const {
    constexpr std::int64_t kMaxLayers = 100'000;
    return size(key, kMaxLayers);
  }

  void add(const std::string& name, Shape shape) {
    // With optimizer states they have a number of bytes, too.
    constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;
    std::int64_t count = 1;
    for (const std::int64_t one : shape)
      if (__builtin_mul_overflow(count, one, &count)) count = kMaxElements;
    elements_ = std::min(elements_, kMaxElements) + std::min(count, kMaxElements);
    if (elements_ > kMaxElements) refuse("describes more parameters than acc can count");
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
    const std::int64_t head = size_or("head_dim", width / heads);
    const std::int64_t kv = head * size_or("num_key_value_heads", heads);
    const std::int64_t inner = size("intermediate_size");
    const bool every_bias = truth("attention_bias");
    const bool mlp_bias = truth("mlp_bias");
    add("embed_tokens.weight", {size("vocab_size"), width});
    for (std::int64_t i = 0; i < layers("num_hidden_layers"); ++i) {
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
    const std::int64_t inner = size_or("n_inner", 4 * width);
    add("wte.weight", {size("vocab_size"), width});
    add("wpe.weight", {size("n_positions"), width});
    for (std::int64_t i = 0; i < layers("n_layer"); ++i) {
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
    add("embeddings.token_type_embeddings.weight", {size_or("type_vocab_size", 2), width});
    norm("embeddings.LayerNorm", width);
    for (std::int64_t i = 0; i < layers("num_hidden_layers"); ++i) {
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
  std::int64_t elements_ = 0;
};

}  // namespace

std::vector<TensorInfo> tensors_of_config(const Json& config, const std::filesystem::path& file) {
  if (!config.is_object())
    throw Error({.kind = ErrorKind::config, .what = "is not a JSON object", .where = file.string()});
  return Family(config, file).tensors();
}

}  // namespace acc::launcher
