// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace acc::launcher {

/// The folders in which that Python looks for packages, as far as its place tells: no program is started.
std::vector<std::filesystem::path> site_packages(const std::filesystem::path& python);

/// The versions of the packages in these folders, by name in lower case with `_` for `-` (`torch`,
/// `nvidia_nccl_cu13`); of one that is there twice the first.
std::map<std::string, std::string> installed_packages(const std::vector<std::filesystem::path>& folders);

/// The version of a LibTorch by its folder (the one with `lib/libtorch_cpu.so`), from its headers; empty: it
/// has none.
std::string libtorch_version(const std::filesystem::path& libtorch);

}  // namespace acc::launcher
