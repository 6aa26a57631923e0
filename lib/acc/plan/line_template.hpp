// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

using TemplateValues = std::map<std::string, std::string, std::less<>>;

/// Python's Template.safe_substitute: `$name` and `${name}` become the value of that name, `$$` becomes `$`,
/// and every other `$` stays as it is.
std::string substitute(std::string_view text, const TemplateValues& values);

/// The names in `${...}` that `--log-line-prefix-template` does not know; they stay in the prefix as they
/// are.
std::vector<std::string> unknown_names(std::string_view line_template);

}  // namespace acc::launcher
