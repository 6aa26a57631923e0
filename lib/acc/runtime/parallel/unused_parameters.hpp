// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// LibTorch's text about parameters that got no gradient in the last step, as an error that names them and
/// acc's option; nothing for any other text. LibTorch tells them by index among those that are trained.
std::optional<Error> explain_unused_parameters(std::string_view text, const torch::nn::Module& module,
                                               std::string where);

}  // namespace acc
