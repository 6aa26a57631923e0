// SPDX-License-Identifier: Apache-2.0
#include "acc/base/json_nesting.hpp"

#include <cstddef>

namespace acc {

bool is_deeply_nested(std::string_view json) {
  constexpr int kMaxDepth = 100;
  int depth = 0;
  bool inside_text = false;
  for (std::size_t i = 0; i < json.size() && depth <= kMaxDepth; ++i) {
    if (json[i] == '"') inside_text = !inside_text;
    if (inside_text && json[i] == '\\') ++i;
    if (inside_text) continue;
    if (json[i] == '[' || json[i] == '{') ++depth;
    if (json[i] == ']' || json[i] == '}') --depth;
  }
  return depth > kMaxDepth;
}

}  // namespace acc
