// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace acc::launcher {

/// Bits of one element of a safetensors type (F32: 32); absent for an unknown type.
std::optional<int> bits_of(std::string_view dtype);

}  // namespace acc::launcher
