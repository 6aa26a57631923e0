// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// All settings as a JSON array, from which the tables of apps/docs are made (scripts/tables). A row has
/// `name`, `group`, `help`, `default`, `words` (the allowed values), `flags` (their spellings), `key` (in
/// config files, `section.key`; empty: none) and `variables` (those that set it).
Value settings_table();

}  // namespace acc::launcher
