// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace acc::launcher {

/// Makes a folder of Python files for workers with `--watch`: with it first on PYTHONPATH, a Python that
/// imports torch says in the worker's page (base/progress_page.hpp) how far it is. Throws Error{system}.
void make_watch_folder(const std::filesystem::path& folder);

}  // namespace acc::launcher
