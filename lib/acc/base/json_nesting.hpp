// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc {

/// Whether brackets and braces of a JSON text are nested deeper than in anything that acc reads. The JSON
/// library copies and writes such a value by recursion, so a short text could use up the stack.
bool is_deeply_nested(std::string_view json);

}  // namespace acc
