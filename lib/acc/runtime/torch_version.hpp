// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc {

/// The version in the text of at::show_config(), or empty when it names none.
std::string torch_version_in(std::string_view config);

/// LibTorch keeps no binary compatibility between versions. Throws Error{system} when the two differ in more
/// than a local part such as `+cu130`.
void require_same_torch(std::string_view compiled, std::string_view running);

/// The same for the LibTorch that acc was built with and the one that this process loaded.
void require_compiled_torch();

}  // namespace acc
