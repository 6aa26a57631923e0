// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc::launcher {

/// What --version prints: `acc` and the version in the first line, for scripts; then how it was built.
std::string version_text();

/// The same for programs, as JSON. Fields are in apps/docs/reference.md.
std::string version_json();

/// The commit that acc was built from; `unknown` for bare files.
std::string_view commit();

/// The address of the repository that the source was cloned from; empty where it is not one for everybody.
std::string_view repository();

/// The version and the beginning of the commit, for bug reports.
std::string version_and_commit();

}  // namespace acc::launcher
