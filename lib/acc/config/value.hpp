// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace acc::launcher {

/// The value of a setting: null, text, number, truth value, list or mapping. Keys of a mapping are sorted, as
/// accelerate writes them.
using Value = nlohmann::json;

}  // namespace acc::launcher
