// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace acc {

/// `5GB`, `200MB`: decimal units, as accelerate's save_model takes them. Throws Error{usage} with `where`.
std::uint64_t parse_byte_size(std::string_view text, std::string_view where);

}  // namespace acc
