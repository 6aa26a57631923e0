// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/memory_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kIntegerBytes = 8;

// Modules that tasks add to a base model.
constexpr std::array<std::string_view, 8> kHeads = {"lm_head",         "cls",          "classifier",
                                                    "score",           "qa_outputs",   "pre_classifier",
                                                    "vocab_projector", "lm_head_layer"};

std::string first_part(const std::string& name) {
  return name.substr(0, name.find('.'));
}

// Empty if the config does not say it.
std::string model_type(const Json& config) {
  const auto found = config.is_object() ? config.find("model_type") : config.end();
  return found != config.end() && found->is_string() ? found->get<std::string>() : "";
}

// The prefix of the base model (`model.`, `bert.`) in the checkpoint of a task.
std::string base_prefix(const std::vector<TensorInfo>& tensors, const Json& config) {
  const std::string type = model_type(config);
  for (const std::string& prefix : {std::string("model."), std::string("transformer."), type + "."}) {
    const auto inside = [&](const TensorInfo& tensor) { return tensor.name.starts_with(prefix); };
    const bool only_heads_beside = std::ranges::all_of(tensors, [&](const TensorInfo& tensor) {
      return inside(tensor) || std::ranges::find(kHeads, first_part(tensor.name)) != kHeads.end();
    });
    if (prefix.size() > 1 && only_heads_beside && std::ranges::any_of(tensors, inside)) return prefix;
  }
  return "";
}

bool is_integer(std::string_view dtype) {
  return dtype.starts_with('I') || dtype.starts_with('U') || dtype == "BOOL";
}

// Integer buffers keep their width; parameters count as float32, whatever their dtype.
std::int64_t bytes_in_float32(const TensorInfo& tensor) {
  return is_integer(tensor.dtype) ? static_cast<std::int64_t>(tensor.end - tensor.begin)
                                  : elements(tensor) * kFloatBytes;
}

std::string parent(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// `layers.3` of `layers.3.mlp.up.weight`: the outermost module that is one of a list.
std::string block(const std::string& name) {
  const std::vector<std::string> parts = split(name, '.');
  std::string path;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    path += (i == 0 ? "" : ".") + parts[i];
    if (i > 0 && parse_integer(parts[i])) return path;
  }
  return "";
}

// A size of a buffer that other sizes are multiplied with.
std::int64_t integer(const Json& config, const char* key, std::int64_t default_value = 0) {
  const auto found = config.is_object() ? config.find(key) : config.end();
  const bool fits = found != config.end() && found->is_number_integer() && *found >= 0 &&
                    *found <= std::numeric_limits<std::int32_t>::max();
  return fits ? found->get<std::int64_t>() : default_value;
}

/// Buffers that the library creates itself, by their module.
std::map<std::string, std::int64_t> made_buffers(const Json& config) {
  const std::string type = model_type(config);
  const std::int64_t positions = integer(config, "max_position_embeddings");
  if (type == "bert" || type == "roberta" || type == "electra" || type == "xlm-roberta")
    return {{"embeddings", 2 * positions * kIntegerBytes}};
  if (type == "distilbert") return {{"embeddings", positions * kIntegerBytes}};
  const bool rotates =
      config.is_object() && (config.contains("rope_theta") || config.contains("rope_parameters") ||
                             config.contains("rope_scaling") || type == "llama");
  const std::int64_t heads = integer(config, "num_attention_heads");
  if (!rotates || heads == 0) return {};
  // transformers 5 keeps the frequencies twice.
  const std::int64_t head_size = integer(config, "head_dim", integer(config, "hidden_size") / heads);
  return {{"rotary_emb", 2 * (head_size / 2) * kFloatBytes}};
}

// Families whose whole embedding module must stay on one device.
bool keeps_embeddings_together(const Json& config) {
  const std::string type = model_type(config);
  return type == "bert" || type == "roberta" || type == "electra" || type == "xlm-roberta";
}

}  // namespace

ModelSize model_size(const std::vector<TensorInfo>& tensors, const Json& config) {
  const std::string prefix = base_prefix(tensors, config);
  const bool together = keeps_embeddings_together(config);
  ModelSize size;
  std::map<std::string, std::int64_t> layers;
  const auto count = [&](const std::string& module, const std::string& name, std::int64_t bytes) {
    size.total += bytes;
    std::set<std::string> holders = {module, block(name)};
    if (together && name.starts_with("embeddings.")) holders.insert("embeddings");
    for (const std::string& holder : holders) layers[holder] += bytes;
  };
  for (const TensorInfo& tensor : tensors) {
    if (!prefix.empty() && !tensor.name.starts_with(prefix)) {
      size.head += bytes_in_float32(tensor);
      continue;
    }
    const std::string name = tensor.name.substr(prefix.size());
    count(parent(name), name, bytes_in_float32(tensor));
  }
  for (const auto& [module, bytes] : made_buffers(config)) count(module, module, bytes);
  // Not a layer: the name is in no block.
  layers.erase("");
  for (const auto& [layer, bytes] : layers) size.largest_layer = std::max(size.largest_layer, bytes);
  return size;
}

std::vector<TrainingMemory> training_memory(std::int64_t parameters, int processes) {
  const auto count = static_cast<double>(parameters);
  const double share = 1.0 / processes;
  // Of each parameter. Adam has two moments.
  struct Bytes {
    double parameters, gradients, optimizer;
  };
  constexpr Bytes kFloat32 = {4, 4, 4 + 4};
  constexpr Bytes kMixed = {2, 2, 4 + 4 + 4};  // the last: a copy of the parameters
  const auto held = [&](const Bytes& bytes, int stage) {
    return count * (bytes.parameters * (stage >= 3 ? share : 1) + bytes.gradients * (stage >= 2 ? share : 1) +
                    bytes.optimizer * (stage >= 1 ? share : 1));
  };
  std::vector<TrainingMemory> rows;
  const std::array<std::string, 4> names = {"none (DDP)", "ZeRO 1", "ZeRO 2, SHARD_GRAD_OP",
                                            "ZeRO 3, FULL_SHARD"};
  for (int stage = 0; stage < 4; ++stage)
    rows.push_back({names[static_cast<std::size_t>(stage)], held(kFloat32, stage), held(kMixed, stage)});
  return rows;
}

std::int64_t gathered_at_once(const std::vector<TensorInfo>& tensors) {
  std::int64_t outside = 0;
  std::map<std::string, std::int64_t> blocks;
  for (const TensorInfo& tensor : tensors) {
    const std::string name = block(tensor.name);
    (name.empty() ? outside : blocks[name]) += bytes_in_float32(tensor);
  }
  std::vector<std::int64_t> sizes;
  for (const auto& [name, bytes] : blocks) sizes.push_back(bytes);
  std::ranges::sort(sizes, std::greater());
  sizes.resize(std::min<std::size_t>(sizes.size(), 2));
  return std::accumulate(sizes.begin(), sizes.end(), outside);
}

namespace {

// Characters, not bytes: titles may hold any.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// Python's rule: of an odd number of blanks the extra one is left if the width is odd, else right.
std::string centred(const std::string& text, std::size_t width) {
  const std::size_t length = width_of(text);
  if (length >= width) return text;
  const std::size_t blanks = width - length;
  const std::size_t left = blanks / 2 + (blanks & width & 1U);
  return std::string(left, ' ') + text + std::string(blanks - left, ' ');
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

struct Corners {
  std::string_view left, middle, right;
};

std::string rule(const std::vector<std::size_t>& widths, const Corners& corners) {
  std::string line(corners.left);
  for (std::size_t i = 0; i < widths.size(); ++i)
    line += repeated("─", widths[i]) + std::string(i + 1 < widths.size() ? corners.middle : corners.right);
  return line + "\n";
}

std::string cells(const std::vector<std::string>& texts, const std::vector<std::size_t>& widths) {
  std::string line = "│";
  for (std::size_t i = 0; i < texts.size(); ++i) line += centred(texts[i], widths[i]) + "│";
  return line + "\n";
}

}  // namespace

std::string size_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::string_view name = kUnits[unit];
  if (bytes >= 1024) {
    bytes /= 1024;
    name = "PB";
  }
  if (unit == 0 && bytes == std::floor(bytes))
    return fmt::format("{} bytes", static_cast<std::int64_t>(bytes));
  std::string number = fmt::format("{:.2f}", bytes);
  if (number.ends_with('0')) number.pop_back();
  return fmt::format("{} {}", number, name);
}

std::string framed_table(const std::string& title, const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headers.size(); ++column) {
    std::size_t width = width_of(headers[column]);
    for (const auto& row : rows) width = std::max(width, width_of(row[column]));
    widths.push_back(width);
  }
  const std::size_t sum = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const std::size_t title_width = width_of(title);
  // accelerate's arithmetic, so that the tables are equal.
  if (title_width > sum) {
    const auto difference =
        static_cast<std::int64_t>(title_width) - static_cast<std::int64_t>(sum + headers.size() + 1);
    widths.back() += 2 * static_cast<std::size_t>(std::abs(difference));
  }
  const std::size_t inner = std::accumulate(widths.begin(), widths.end(), headers.size() - 1);
  std::string text = rule({inner}, {"┌", "", "┐"}) + cells({title}, {inner});
  text += rule(widths, {"├", "┬", "┤"}) + cells(headers, widths);
  text += rule(widths, {"├", "┼", "┤"});
  for (const auto& row : rows) text += cells(row, widths);
  return text + rule(widths, {"└", "┴", "┘"});
}

std::string estimate_table(const std::string& model, const ModelSize& size,
                           const std::vector<std::string>& dtypes) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& dtype : dtypes) {
    const double divisor = dtype == "float16" ? 2 : dtype == "int8" ? 4 : dtype == "int4" ? 8 : 1;
    const auto total = static_cast<double>(size.total);
    const std::string training = divisor == 1   ? size_text(4 * total)
                                 : divisor == 2 ? size_text(2 * total)
                                                : std::string("N/A");
    rows.push_back({dtype, size_text(static_cast<double>(size.largest_layer) / divisor),
                    size_text(total / divisor), training});
  }
  return framed_table(fmt::format("Memory Usage for loading `{}`", model),
                      {"dtype", "Largest Layer", "Total Size", "Training using Adam"}, rows);
}

}  // namespace acc::launcher
