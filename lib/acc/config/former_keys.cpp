// SPDX-License-Identifier: Apache-2.0
#include "acc/config/former_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

using Kind = DocumentNode::Kind;

// Keys that accelerate once wrote and no version since 1.15 heeds.
struct Gone {
  std::string_view section;
  std::string_view name;
  std::string_view instead;
};
constexpr std::array kGone = {
    Gone{"", "ipex_config", "PyTorch does itself what IPEX did"},
    Gone{"", "use_xpu", "XPUs are chosen by distributed_type"},
    Gone{"", "use_mps_device", "it is used where there is one"},
    Gone{"", "tp_config", "parallelism_config says it now"},
    Gone{"mpirun_config", "mpirun_ccl", "oneCCL finds its workers itself"},
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

// `fp16: true` is mixed_precision fp16, unless the file says that too.
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
  DocumentNode* found = find(mapping, "dynamo_backend");
  if (found == nullptr || found->kind != Kind::scalar) return;
  DocumentNode section{
      .kind = Kind::mapping, .at = found->at, .key = "dynamo_config", .key_at = found->key_at};
  const bool off = found->is_null() || found->value == false || to_lower(found->text) == "no";
  if (!off) section.items.push_back(*found);
  erase(mapping, "dynamo_config");
  *find(mapping, "dynamo_backend") = std::move(section);
}

}  // namespace

std::vector<FormerKey> translate_former_keys(DocumentNode& mapping) {
  translate_fp16(mapping);
  translate_dynamo(mapping);
  // accelerate's way to write that the command line must say it.
  std::erase_if(mapping.items,
                [](const DocumentNode& item) { return item.key == "num_processes" && item.value == -1; });
  std::vector<FormerKey> gone;
  for (const Gone& key : kGone) {
    DocumentNode* holder = key.section.empty() ? &mapping : find(mapping, key.section);
    const DocumentNode* found = holder == nullptr ? nullptr : find(*holder, key.name);
    if (found == nullptr) continue;
    gone.push_back({std::string(key.name), found->key_at, std::string(key.instead)});
    erase(*holder, key.name);
  }
  return gone;
}

}  // namespace acc::launcher
