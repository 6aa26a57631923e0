// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc::launcher {

/// What a person should see of the text of an error: without the frames of LibTorch's own C++ stack, and
/// without the warnings that Python and LibTorch add after it, while the program that has failed ends.
std::string readable_error(std::string_view text);

}  // namespace acc::launcher
