// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/file_name.hpp"

#include <algorithm>

#include "acc/base/text.hpp"

namespace acc {

bool is_below_folder(std::string_view name) {
  return name.find('\0') == std::string_view::npos &&
         std::ranges::none_of(split(name, '/'),
                              [](const auto& part) { return part.empty() || part == "." || part == ".."; });
}

}  // namespace acc
