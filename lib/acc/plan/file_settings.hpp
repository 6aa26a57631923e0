// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "acc/config/read.hpp"
#include "acc/plan/setting.hpp"

namespace acc::launcher {

/// The settings that a config file gives, by name; each origin is `file:line`. Keys of sections stand beside
/// the sections themselves, under the names of their rows.
std::map<std::string, Setting, std::less<>> file_settings(const FileConfig& file);

/// The names of those settings in the order of the file.
std::vector<std::string> file_order(const FileConfig& file);

}  // namespace acc::launcher
