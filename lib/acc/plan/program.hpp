// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

namespace acc {

/// What a path is to somebody who wants to run it.
enum class FileKind {
  missing,
  directory,
  package,         ///< a folder with __main__.py, which Python runs
  executable,      ///< ELF or `#!`, with permission to execute it
  not_executable,  ///< ELF or `#!`, without that permission
  other,           ///< a readable file of another kind: Python's business
  unreadable,
};

using FileKindOf = std::function<FileKind(const std::filesystem::path&)>;

/// Looks at the file itself.
FileKind kind_of_file(const std::filesystem::path& path);

/// What the person said about the program.
struct ProgramRequest {
  std::vector<std::string> words = {};  ///< program and arguments
  bool module = false;                  ///< `-m`
  bool no_python = false;
  bool run_path = false;    ///< a Python file, whatever it looks like; module and no_python do not count then
  std::string python = {};  ///< `--python`
  bool unbuffered = false;  ///< Python gets `-u`, as torchrun gives it
};

/// How a worker is started.
struct WorkerProgram {
  std::vector<std::string> command = {};
  /// The file that is executed.
  std::filesystem::path file = {};
  /// Why it cannot be started; the command is then what was asked for.
  std::optional<Problem> problem = {};
};

/// An interpreter: how it was named, the file, or why there is none.
struct Python {
  std::string word = {};
  std::filesystem::path file = {};
  std::optional<Problem> problem = {};
};

/// The Python of `asked` (what --python says), PYTHON_EXEC, VIRTUAL_ENV, CONDA_PREFIX, `python3` or `python`
/// on PATH, in that order.
Python find_python(const std::string& asked, const Environment& environment, const FileKindOf& kind_of);

/// An ELF or `#!` file is executed as it is; `.py`, `-m` and everything else runs under the Python of
/// `--python`, PYTHON_EXEC, VIRTUAL_ENV, CONDA_PREFIX, `python3` or `python` on PATH, in that order. A bare
/// name that is no file here is looked for on PATH.
WorkerProgram find_program(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of);

}  // namespace acc
