// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace acc::launcher {

/// `acc test`: runs acc-selftest on the very launch path that the user's config (and any flags of
/// `acc launch`) asks for. Returns the exit code.
int test_command(const std::vector<std::string>& words);

}  // namespace acc::launcher
