// SPDX-License-Identifier: Apache-2.0
#include "acc/config/to_fsdp2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/document.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/typed_value.hpp"

namespace acc::launcher {
namespace {

constexpr std::array<std::string_view, 4> kGone = {"fsdp_backward_prefetch", "fsdp_sync_module_states",
                                                   "fsdp_use_orig_params", "fsdp_forward_prefetch"};

// Whether parameters are freed after the forward pass under a strategy of version 1.
Value reshards(const Value& strategy) {
  const std::string text = strategy.is_string() ? strategy.get<std::string>() : strategy.dump();
  const auto word = allowed_word(*find_setting("fsdp_sharding_strategy"), text);
  if (!word) return strategy;
  return *word == "FULL_SHARD" || *word == "HYBRID_SHARD";
}

// The section in the order of the file, since of the two keys for sharding the later one wins.
Value convert(const DocumentNode& section, std::vector<std::string>& notes) {
  Value result = Value::object();
  for (const DocumentNode& item : section.items) {
    const SettingSpec* spec = find_section_key("fsdp_config", item.key);
    const std::string name(spec == nullptr ? item.key : spec->name);
    if (std::ranges::find(kGone, name) != kGone.end()) {
      notes.push_back(fmt::format("{} in line {} is left out: version 2 has no such setting", item.key,
                                  item.key_at.line));
    } else if (name == "fsdp_sharding_strategy" || name == "fsdp_reshard_after_forward") {
      result["fsdp_reshard_after_forward"] = reshards(to_value(item));
    } else if (name != "fsdp_version") {
      result[item.key] = to_value(item);
      if (name == "fsdp_state_dict_type" && item.value == "LOCAL_STATE_DICT")
        notes.push_back(
            fmt::format("fsdp_state_dict_type in line {} must be SHARDED_STATE_DICT or FULL_STATE_DICT in "
                        "version 2",
                        item.key_at.line));
    }
  }
  result["fsdp_version"] = 2;
  return result;
}

// The one key that gets another name.
const SettingSpec* row_of(std::string_view section, std::string_view key) {
  const SettingSpec* spec = section == "fsdp_config" ? find_section_key(section, key) : nullptr;
  const bool renamed = spec != nullptr && spec->name == "fsdp_sharding_strategy";
  return renamed ? find_setting("fsdp_reshard_after_forward") : nullptr;
}

bool is_version_2(const DocumentNode& section) {
  return std::ranges::any_of(section.items, [](const DocumentNode& item) {
    const SettingSpec* spec = find_section_key("fsdp_config", item.key);
    return spec != nullptr && spec->name == "fsdp_version" && parse_integer(item.text) == 2;
  });
}

}  // namespace

Fsdp2Text to_fsdp2(std::string_view text, const std::filesystem::path& file) {
  const DocumentNode root = parse_document(text, file);
  if (root.kind != DocumentNode::Kind::mapping || root.items.empty()) {
    throw Error({.kind = ErrorKind::config,
                 .what = root.is_null() ? "is empty" : "holds no `key: value` lines at its top level",
                 .where = file.string()});
  }
  const auto section = std::ranges::find(root.items, "fsdp_config", &DocumentNode::key);
  if (section == root.items.end() || section->kind != DocumentNode::Kind::mapping)
    return {std::string(text), {"there is no fsdp_config in it: nothing to change"}};
  if (is_version_2(*section)) return {std::string(text), {"it is for version 2 already: nothing to change"}};
  Fsdp2Text result;
  Value wanted = to_value(root);
  wanted["fsdp_config"] = convert(*section, result.notes);
  result.text = edited_document(text, wanted, file, row_of);
  return result;
}

}  // namespace acc::launcher
