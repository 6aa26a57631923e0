// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// Whether a flag, key or argument of this name may have a secret as its value: the name has `token`, `key`,
/// `secret` or `password`, in any case.
bool names_secret(std::string_view name);

/// A command line whose secrets are `***`: `--api-key ***`, `--token=***`, `wandb.key=***`.
std::vector<std::string> masked_words(std::vector<std::string> words);

/// A setting's value, masked likewise: as a whole by its name, else the pairs in its texts, as in
/// `protocol=https,password=***`.
Value masked_value(std::string_view name, const Value& value);

}  // namespace acc::launcher
