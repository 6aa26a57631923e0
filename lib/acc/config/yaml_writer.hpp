// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// The mapping as PyYAML's safe_dump (6.0) writes it, byte for byte: sorted keys, block style, lists at the
/// indent of their key, quotes only where YAML 1.1 would misread, lines folded after column 80.
std::string write_yaml(const Value& mapping);

}  // namespace acc::launcher
