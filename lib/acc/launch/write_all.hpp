// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/base/descriptor.hpp"

namespace acc {

/// Writes all of `text`, whatever signals come. Returns why it could not; empty: it could.
std::string write_all(const Descriptor& file, std::string_view text);

}  // namespace acc
