// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace acc::launcher {

/// What says whose Python is meant where nobody names one.
struct Caller {
  /// The path by which acc was called: the Python of its environment is meant.
  std::filesystem::path path = {};
  /// The program whose name acc has taken, and the Python that ran it; empty: there was none.
  std::filesystem::path kept = {};
  std::filesystem::path python = {};
};

/// The program that `acc install-...` kept when acc took the name: it is beside `called_as`, or beside a file
/// that this is a link to. Empty: there is none.
std::filesystem::path find_kept_program(const std::filesystem::path& called_as, const std::string& name);

/// The caller of acc under a launcher's `name`. Links lead to the environment where acc took the name; one
/// that leads to acc itself says nothing, for acc may be installed apart from PyTorch.
Caller caller_under_name(const std::filesystem::path& called_as, const std::string& name);

/// The Python that runs a program which begins like this, as pip, uv and conda write it, also by way of sh
/// for a path with spaces; empty: it is not a Python's. A word without a slash is one that env looks for.
std::string python_of_script(std::string_view beginning);

/// The file that the kernel, or sh for a path with spaces, starts for a script; empty: the file is no script.
std::filesystem::path interpreter_of_script(const std::filesystem::path& file);

/// Whether a file that begins with `#!` is Python's, whichever it names: a script, or a zip with one.
bool is_python_script(const std::filesystem::path& file);

}  // namespace acc::launcher
