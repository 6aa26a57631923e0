// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace acc::detail {

/// Calls `function` with 0 to `count` - 1 on this thread and one more, in this order, and returns when all
/// calls have ended. After a call that throws, none begins; throws the exception of the lowest number.
void on_two_threads(std::size_t count, const std::function<void(std::size_t)>& function);

}  // namespace acc::detail
