// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/plan/caller.hpp"

namespace acc::launcher {

/// The kind of a file, as far as it matters for running it.
enum class FileKind {
  missing,
  directory,
  package,         ///< a folder with __main__.py, which Python runs
  executable,      ///< ELF or `#!`, with permission to execute it
  not_executable,  ///< ELF or `#!`, without that permission
  other,           ///< any other readable file, left to Python
  stream,          ///< a pipe, a socket or a device, which can be read only once
  unreadable,
};

using FileKindOf = std::function<FileKind(const std::filesystem::path&)>;

/// Examines the file; does not read from streams.
FileKind kind_of_file(const std::filesystem::path& path);

/// The settings that concern the program.
struct ProgramRequest {
  std::vector<std::string> words = {};  ///< program and arguments
  std::string after_switch = {};        ///< CommandLine::switch_before_program
  bool module = false;                  ///< `-m`
  bool no_python = false;
  bool run_path = false;    ///< run it as a Python file; overrides module and no_python
  std::string python = {};  ///< `--python`
  bool unbuffered = false;  ///< pass `-u` to Python, as torchrun does
  Caller caller = {};
  /// Whether Python runs a file although it begins with `#!`. Empty: none, the file says itself what runs it.
  std::function<bool(const std::filesystem::path&)> is_python_script = {};
};

/// The command that starts a worker.
struct WorkerProgram {
  std::vector<std::string> command = {};
  /// The file to execute.
  std::filesystem::path file = {};
  /// Why it cannot be started; `command` then holds the requested words.
  std::optional<Problem> problem = {};
  /// Python::origin of the interpreter; empty if there is none.
  std::string python_origin = {};
  /// Only one worker can read the script: it is `-` or a pipe.
  bool read_once = false;

  /// Whether Python runs it, or would if the problem were mended.
  bool is_for_python() const { return !python_origin.empty() || problem.has_value(); }
};

/// A Python interpreter: its name, its file, and where it was found (a flag, a variable, a folder), or why
/// there is none.
struct Python {
  std::string word = {};
  std::filesystem::path file = {};
  std::string origin = {};
  std::optional<Problem> problem = {};
};

/// Finds the Python for scripts, in this order: `requested` (--python), PYTHON_EXEC, that of the program
/// whose name acc has taken, the folder of the caller if it belongs to a virtual or conda environment, the
/// first folder of PATH with `python3` or `python`, VIRTUAL_ENV, CONDA_PREFIX.
Python find_python(const std::string& requested, const Environment& environment, const FileKindOf& kind_of,
                   const Caller& caller);

/// Whether the first word, right behind a switch, is rather a value for it than a program: `true train.py`,
/// which would end with success and train nothing. Alone it may be the program: `acc run --standalone true`.
bool looks_like_value(const std::vector<std::string>& words);

/// Determines how to run the program. An ELF or `#!` file is executed directly; `.py`, `-m`, `-` (standard
/// input) and everything else runs under the Python of find_python. A bare name that is not a file in the
/// current folder is searched on PATH, unless it looks like a value of the switch before it.
WorkerProgram find_program(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of);

}  // namespace acc::launcher
