// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/config/schema.hpp"

namespace acc {

/// The help of `acc launch` or of `acc run`, made from the schema, wrapped at `width` columns.
std::string launch_help(Dialect dialect, std::string_view program, int width);

}  // namespace acc
