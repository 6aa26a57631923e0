// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"

namespace acc {

/// LibTorch's text about parameters that got no gradient in the last step, as an error that names them and
/// acc's option; nothing for any other text. LibTorch tells them by index among those that were trained when
/// its Reducer was made: `trained` are their names.
std::optional<Error> explain_unused_parameters(std::string_view text, const std::vector<std::string>& trained,
                                               std::string where);

}  // namespace acc
