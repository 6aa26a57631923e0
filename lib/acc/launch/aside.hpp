// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "acc/base/descriptor.hpp"

namespace acc {

/// Runs `work`, which may take its time, in a child process that shares nothing with us but `to`, and dies
/// with us. Whoever reads the other end of `to` sees it end. The child is reaped as an orphan is. For a
/// process without other threads. False: there is no room for another process.
bool run_aside(Descriptor to, const std::function<void(int to)>& work);

}  // namespace acc
