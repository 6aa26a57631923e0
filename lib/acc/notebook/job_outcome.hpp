// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"

namespace acc::detail {

/// How the agent of a notebook's job tells the caller how the job ended: why there was a failure, or absent:
/// there was none.
std::string text_of_outcome(const std::optional<Error>& failure);

/// What text_of_outcome() was given. Throws Error{system} if the text is something else.
std::optional<Error> read_outcome(std::string_view text);

}  // namespace acc::detail
