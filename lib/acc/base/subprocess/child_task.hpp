// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "acc/base/descriptor.hpp"

namespace acc {

/// Runs `work` in a child process, while we go on. The child has default signal dispositions and, beside
/// standard error, no descriptor but `to`, whose other end shows what it writes and when it ends; it is
/// killed when we end. Nobody waits for it here: whoever reaps this process's children reaps it too. For a
/// process without other threads. False: the system has no room for another process.
bool run_in_child(Descriptor to, const std::function<void(int to)>& work);

}  // namespace acc
