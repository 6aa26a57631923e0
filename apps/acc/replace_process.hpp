// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

namespace acc::launcher {

/// Lets this process execute another program, found on PATH, instead of acc. It gets the default of SIGXFSZ,
/// which acc ignores. Returns if the program cannot be executed; errno says why.
void replace_process(const char* program, char* const* words, char* const* environment = ::environ);

}  // namespace acc::launcher
