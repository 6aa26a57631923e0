// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "acc/formats/pickle_reader.hpp"

namespace fuzz {

/// All values that can be reached from one, each once: they may refer to each other.
inline std::vector<const acc::PickleValue*> values_from(const acc::PickleValue& root) {
  std::set<const acc::PickleValue*> known = {&root};
  std::vector<const acc::PickleValue*> values = {&root};
  const auto add = [&](const acc::PickleValue* value) {
    if (value != nullptr && known.insert(value).second) values.push_back(value);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const acc::PickleValue& value = *values[i];
    for (const acc::PickleValue* item : value.items) add(item);
    for (const auto& [key, item] : value.pairs) {
      add(key);
      add(item);
    }
    add(value.arguments);
    add(value.state);
  }
  return values;
}

}  // namespace fuzz
