// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

namespace acc::launcher {

/// What a path is to somebody who wants to run it.
enum class FileKind {
  missing,
  directory,
  package,         ///< a folder with __main__.py, which Python runs
  executable,      ///< ELF or `#!`, with permission to execute it
  not_executable,  ///< ELF or `#!`, without that permission
  other,           ///< a readable file of another kind: Python's business
  stream,          ///< a pipe, a socket or a device: what is read from it is gone
  unreadable,
};

using FileKindOf = std::function<FileKind(const std::filesystem::path&)>;

/// Looks at the file itself; reads nothing of a stream.
FileKind kind_of_file(const std::filesystem::path& path);

/// What the person said about the program.
struct ProgramRequest {
  std::vector<std::string> words = {};  ///< program and arguments
  bool module = false;                  ///< `-m`
  bool no_python = false;
  bool run_path = false;    ///< a Python file, whatever it looks like; module and no_python do not count then
  std::string python = {};  ///< `--python`
  bool unbuffered = false;  ///< Python gets `-u`, as torchrun gives it
  /// The path by which acc was called.
  std::filesystem::path called_as = {};
};

/// How a worker is started.
struct WorkerProgram {
  std::vector<std::string> command = {};
  /// The file that is executed.
  std::filesystem::path file = {};
  /// Why it cannot be started; the command is then what was asked for.
  std::optional<Problem> problem = {};
  /// Why this Python runs it, as in Python::origin; empty: no Python does.
  std::string python_origin = {};
  /// One worker alone can read the script: `-`, or a pipe.
  bool read_once = false;
};

/// An interpreter: how it was named, the file, why this one (a flag, a variable, a folder), or why there is
/// none.
struct Python {
  std::string word = {};
  std::filesystem::path file = {};
  std::string origin = {};
  std::optional<Problem> problem = {};
};

/// What `python3`, typed where acc was, would start. In this order: `asked` (what --python says),
/// PYTHON_EXEC, the folder of `called_as` where it is that of an environment (venv or conda), the first
/// folder of PATH with a `python3` or `python`, VIRTUAL_ENV, CONDA_PREFIX.
Python find_python(const std::string& asked, const Environment& environment, const FileKindOf& kind_of,
                   const std::filesystem::path& called_as);

/// An ELF or `#!` file is executed as it is; `.py`, `-m`, `-` (standard input) and everything else runs under
/// the Python of find_python. A bare name that is not a file here is looked for on PATH.
WorkerProgram find_program(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of);

}  // namespace acc::launcher
