// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/config/value.hpp"

namespace acc::launcher {

/// The JSON schema of config files, made from the schema table: editors complete and check with it.
/// configs/schema.json holds it.
Value file_schema();

}  // namespace acc::launcher
