// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/base/environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// How a truth value is written into a variable: as Python shows it (`True`), or in lower case.
enum class TruthStyle { python, lower };

std::string truth_text(bool value, TruthStyle style);

/// What a variable holds for the setting: texts and numbers as they are.
std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style);

/// Every setting of the section that has a value, under its variable.
Environment section_variables(const Settings& settings, std::string_view section, TruthStyle style);

}  // namespace acc::launcher
