// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// A file of a template or of a project: its path below the folder, and its text.
struct ProjectFile {
  std::string path = {};
  std::string text = {};

  bool operator==(const ProjectFile&) const = default;
};

/// The text with each `@key@` replaced by the value; of other keys it stays as it is.
std::string fill_in(std::string_view text, const std::map<std::string, std::string>& values);

/// The name of a project in `folder`: its last part as given; for a link, the link's. Throws
/// Error{usage} when that cannot be the name of a program and of a target of CMake.
std::string project_name(const std::filesystem::path& folder);

/// Makes `folder` with the files: whole, or not at all. Creates missing parents. An empty folder is filled,
/// and keeps its owner and mode. Throws Error{usage} when something else is there, or it is the current one,
/// and Error{system} when it cannot be written.
void write_project(const std::filesystem::path& folder, std::span<const ProjectFile> files);

}  // namespace acc::launcher
