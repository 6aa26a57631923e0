// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace acc {

/// `512 MiB`, `1.5 GiB`.
std::string short_size(std::uint64_t bytes);

}  // namespace acc
