// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/shell_completion.hpp"

namespace acc::launcher {

/// acc(1): the commands, each with its flags; those of launch and run have pages of their own. `version` is
/// acc's.
std::string man_page(const std::vector<CompletionCommand>& commands, std::string_view version);

/// acc-launch(1) or acc-run(1): every flag of the table by its group, with keys and variables, and the exit
/// codes.
std::string launch_man_page(Dialect dialect, std::string_view version);

}  // namespace acc::launcher
