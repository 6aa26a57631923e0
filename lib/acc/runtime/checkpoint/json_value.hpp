// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/runtime/checkpoint/pt_value.hpp"

namespace acc {

/// JSON text as plain data of Python: objects become dicts. Throws Error{usage} for text that is no JSON.
PtValue from_json(std::string_view text);

/// Plain data as JSON text. What JSON lacks becomes null: objects, numbers that are not finite, and tensors
/// of more than one element; keys that are no text are left out.
std::string to_json(const PtValue& value);

}  // namespace acc
