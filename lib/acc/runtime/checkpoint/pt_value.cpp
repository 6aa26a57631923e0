// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_value.hpp"

namespace acc {
namespace {

template <class Key, class Given>
const PtValue* find_in(const PtValue& dict, const Given& key) {
  const auto* entries = dict.get_if<PtDict>();
  if (entries == nullptr) return nullptr;
  for (const PtEntry& entry : *entries) {
    const auto* own = entry.key.get_if<Key>();
    if (own != nullptr && *own == key) return &entry.value;
  }
  return nullptr;
}

}  // namespace

const PtValue* PtValue::find(std::string_view key) const {
  return find_in<std::string>(*this, key);
}

const PtValue* PtValue::find(std::int64_t key) const {
  return find_in<std::int64_t>(*this, key);
}

std::optional<double> PtValue::number() const {
  if (const auto* truth = get_if<bool>()) return *truth ? 1 : 0;
  if (const auto* whole = get_if<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = get_if<double>()) return *real;
  const auto* tensor = get_if<at::Tensor>();
  if (tensor != nullptr && tensor->numel() == 1 && !tensor->is_complex()) return tensor->item<double>();
  return {};
}

}  // namespace acc
