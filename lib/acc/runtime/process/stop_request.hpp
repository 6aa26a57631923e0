// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::detail {

/// Notes from now on whether this process gets SIGTERM, SIGUSR1 or SIGUSR2, by which launchers and engines
/// ask for the end or announce it, in the place of what the signal would do. A signal that the program
/// handles itself is left alone, as is a SIGTERM that it ignores; launchers start workers with the other two
/// ignored. Does nothing when called again.
void note_stop_signals();

/// Whether one of them has arrived since.
bool stop_was_requested();

}  // namespace acc::detail
