// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

using TemplateValues = std::map<std::string, std::string, std::less<>>;

/// Where `$$` stands for `$`.
enum class Escape {
  every_dollar,  ///< everywhere, as in Python's templates
  references,    ///< before what would be replaced: `$$name`, `$${name}`
};

/// Replaces `$name` and `${name}` by the value of that name; every other `$` stays as it is. With
/// Escape::every_dollar as Python's Template.safe_substitute.
std::string substitute(std::string_view text, const TemplateValues& values, Escape escape);

/// The names in `${...}` that `--log-line-prefix-template` does not know; they stay in the prefix as they
/// are.
std::vector<std::string> unknown_names(std::string_view line_template);

}  // namespace acc::launcher
