// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/script/project.hpp"

namespace acc::launcher {

/// What `acc new` can write.
std::vector<std::string> project_kinds();

/// The files of apps/templates/training.
std::vector<ProjectFile> training_template();

}  // namespace acc::launcher
