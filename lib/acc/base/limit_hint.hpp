// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc {

/// What to do when a system call fails with this errno value because of a limit: on open files, or on
/// processes. Empty for other values.
std::string limit_hint(int error_number);

}  // namespace acc
