// SPDX-License-Identifier: Apache-2.0
#include "acc/config/migration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/config/document.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {
namespace {

using Kind = DocumentNode::Kind;

// Keys that older versions of accelerate wrote and that accelerate 1.15 ignores.
struct DroppedKey {
  std::string_view section;
  std::string_view name;
  std::string_view instead;
};
constexpr std::array kDroppedKeys = {
    DroppedKey{"", "ipex_config", "PyTorch does itself what IPEX did"},
    DroppedKey{"", "use_xpu", "XPUs are chosen by distributed_type"},
    DroppedKey{"", "use_mps_device", "it is used where there is one"},
    DroppedKey{"", "tp_config", "parallelism_config replaces it"},
    DroppedKey{"mpirun_config", "mpirun_ccl", "oneCCL finds its workers itself"},
};

DocumentNode* find(DocumentNode& mapping, std::string_view key) {
  const auto found = std::ranges::find(mapping.items, key, &DocumentNode::key);
  return found == mapping.items.end() ? nullptr : &*found;
}

void erase(DocumentNode& mapping, std::string_view key) {
  std::erase_if(mapping.items, [&](const DocumentNode& item) { return item.key == key; });
}

bool is_true(const DocumentNode& node) {
  return node.value == true || parse_truth(node.text).value_or(false);
}

// `fp16: true` becomes `mixed_precision: fp16`, unless the file sets mixed_precision.
void translate_fp16(DocumentNode& mapping) {
  DocumentNode* fp16 = find(mapping, "fp16");
  if (fp16 == nullptr || fp16->kind != Kind::scalar) return;
  if (is_true(*fp16) && find(mapping, "mixed_precision") == nullptr) {
    fp16->key = "mixed_precision";
    fp16->value = fp16->text = "fp16";
    fp16->quoted = true;
    return;
  }
  erase(mapping, "fp16");
}

// `dynamo_backend: X` at top level replaces the section, as in accelerate.
void translate_dynamo(DocumentNode& mapping) {
  DocumentNode* backend = find(mapping, "dynamo_backend");
  if (backend == nullptr || backend->kind != Kind::scalar) return;
  DocumentNode section{.kind = Kind::mapping,
                       .position = backend->position,
                       .key = "dynamo_config",
                       .key_position = backend->key_position};
  const bool off = backend->is_null() || backend->value == false || to_lower(backend->text) == "no";
  if (!off) section.items.push_back(*backend);
  erase(mapping, "dynamo_config");
  *find(mapping, "dynamo_backend") = std::move(section);
}

}  // namespace

std::vector<FormerKey> translate_former_keys(DocumentNode& mapping) {
  translate_fp16(mapping);
  translate_dynamo(mapping);
  // In accelerate's files -1 means: given on the command line.
  std::erase_if(mapping.items,
                [](const DocumentNode& item) { return item.key == "num_processes" && item.value == -1; });
  std::vector<FormerKey> dropped;
  for (const DroppedKey& key : kDroppedKeys) {
    DocumentNode* holder = key.section.empty() ? &mapping : find(mapping, key.section);
    const DocumentNode* found = holder == nullptr ? nullptr : find(*holder, key.name);
    if (found == nullptr) continue;
    dropped.push_back({std::string(key.name), found->key_position, std::string(key.instead)});
    erase(*holder, key.name);
  }
  return dropped;
}

namespace {

// Settings of FSDP 1 that FSDP 2 does not have.
constexpr std::array<std::string_view, 4> kVersion1Only = {
    "fsdp_backward_prefetch", "fsdp_sync_module_states", "fsdp_use_orig_params", "fsdp_forward_prefetch"};

// Converts a sharding strategy of version 1 to fsdp_reshard_after_forward of version 2.
Value reshards(const Value& strategy) {
  const std::string text = strategy.is_string() ? strategy.get<std::string>() : strategy.dump();
  const auto word = allowed_word(row_of(key::fsdp_sharding_strategy), text);
  if (!word) return strategy;
  return *word == "FULL_SHARD" || *word == "HYBRID_SHARD";
}

// Converts the section in the order of the file: of the two sharding keys the later one wins.
Value convert_section(const DocumentNode& section, std::vector<std::string>& notes) {
  Value result = Value::object();
  for (const DocumentNode& item : section.items) {
    const SettingSpec* spec = find_section_key("fsdp_config", item.key);
    const std::string name(spec == nullptr ? item.key : spec->name);
    if (std::ranges::find(kVersion1Only, name) != kVersion1Only.end()) {
      notes.push_back(fmt::format("{} in line {} is left out: version 2 has no such setting", item.key,
                                  item.key_position.line));
    } else if (name == "fsdp_sharding_strategy" || name == "fsdp_reshard_after_forward") {
      result["fsdp_reshard_after_forward"] = reshards(to_value(item));
    } else if (name != "fsdp_version") {
      result[item.key] = to_value(item);
      if (name == "fsdp_state_dict_type" && item.value == "LOCAL_STATE_DICT")
        notes.push_back(
            fmt::format("fsdp_state_dict_type in line {} must be SHARDED_STATE_DICT or FULL_STATE_DICT in "
                        "version 2",
                        item.key_position.line));
    }
  }
  result["fsdp_version"] = 2;
  return result;
}

// fsdp_sharding_strategy is the only key that is renamed.
const SettingSpec* renamed_row(std::string_view section, std::string_view key) {
  const SettingSpec* spec = section == "fsdp_config" ? find_section_key(section, key) : nullptr;
  const bool renamed = spec != nullptr && spec->id == key::fsdp_sharding_strategy;
  return renamed ? &row_of(key::fsdp_reshard_after_forward) : nullptr;
}

bool is_version_2(const DocumentNode& section) {
  return std::ranges::any_of(section.items, [](const DocumentNode& item) {
    const SettingSpec* spec = find_section_key("fsdp_config", item.key);
    return spec != nullptr && spec->id == key::fsdp_version && parse_integer(item.text) == 2;
  });
}

}  // namespace

Fsdp2Text to_fsdp2(std::string_view text, const std::filesystem::path& file) {
  const DocumentNode root = parse_document(text, file);
  if (root.kind != DocumentNode::Kind::mapping || root.items.empty()) {
    throw Error({.kind = ErrorKind::config,
                 .what = root.is_null() ? "is empty" : "has no `key: value` lines at its top level",
                 .where = file.string()});
  }
  const auto section = std::ranges::find(root.items, "fsdp_config", &DocumentNode::key);
  if (section == root.items.end() || section->kind != DocumentNode::Kind::mapping)
    return {std::string(text), {"there is no fsdp_config in it: nothing to change"}};
  if (is_version_2(*section)) return {std::string(text), {"it is for version 2 already: nothing to change"}};
  Fsdp2Text result;
  Value wanted = to_value(root);
  wanted["fsdp_config"] = convert_section(*section, result.notes);
  result.text = edited_document(text, wanted, file, renamed_row);
  return result;
}

}  // namespace acc::launcher
