// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "acc/config/schema.hpp"

namespace acc::test {

/// The row of the setting with this name.
inline const launcher::SettingSpec& setting_called(std::string_view name) {
  const auto rows = launcher::schema();
  const auto found = std::ranges::find(rows, name, &launcher::SettingSpec::name);
  if (found == rows.end()) throw std::logic_error("no setting '" + std::string(name) + "' in the schema");
  return *found;
}

}  // namespace acc::test
