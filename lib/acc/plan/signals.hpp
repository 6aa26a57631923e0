// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// `SIGTERM,SIGUSR1`: whole names, blanks around them do not count. Throws Error{usage} with `where` for a
/// name that no signal has, and for signals that a program cannot take or that say it is broken.
std::vector<int> parse_signals(std::string_view text, const std::string& where);

/// The number of the signal with that whole name, and 0 when there is none.
int signal_number(std::string_view name);

}  // namespace acc::launcher
