// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// Whether a flag, key or argument of this name may have a secret as its value: a part of the name, between
/// `-`, `_`, `.` and the like, ends with `token`, `key`, `secret`, `password` or a word like these, in any
/// case: `hf_token`, `APIKEY`. What counts tokens, or cuts a text into them, has none: `max_tokens`,
/// `tokenizer`.
bool names_secret(std::string_view name);

/// A command line whose secrets are `***`: `--api-key ***`, `--env=HF_TOKEN=***`, `wandb.key:***`, also in a
/// list of pairs and in JSON; and the user and password of an address: `https://***@host`.
std::vector<std::string> masked_words(std::vector<std::string> words);

/// A setting's value, masked likewise: as a whole by its name, else what its texts have of this.
Value masked_value(std::string_view name, const Value& value);

}  // namespace acc::launcher
