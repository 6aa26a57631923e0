// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> path_folders(const Environment& environment) {
  std::vector<fs::path> folders;
  for (const std::string& folder : split(environment.get("PATH", "/usr/local/bin:/usr/bin:/bin"), ':'))
    folders.emplace_back(folder.empty() ? "." : folder);
  return folders;
}

std::optional<fs::path> find_on_path(const std::string& name, const Environment& environment,
                                     const FileKindOf& kind_of) {
  for (const fs::path& folder : path_folders(environment)) {
    fs::path candidate = folder / name;
    if (kind_of(candidate) == FileKind::executable) return candidate;
  }
  return std::nullopt;
}

// A Python that was named explicitly must exist.
Python named_python(const std::string& name, const std::string& origin, const Environment& environment,
                    const FileKindOf& kind_of) {
  if (name.empty())
    return {.problem =
                Problem{.what = "is set but empty", .where = origin, .hint = "unset it, or name a Python"}};
  std::optional<fs::path> file = name;
  if (name.find('/') == std::string::npos) file = find_on_path(name, environment, kind_of);
  if (!file || kind_of(*file) != FileKind::executable) {
    return {.word = name,
            .problem = Problem{.what = "no executable Python at '" + name + "'", .where = origin}};
  }
  return {.word = name, .file = *file, .origin = origin};
}

std::optional<fs::path> python_in(const fs::path& folder, const FileKindOf& kind_of) {
  for (const char* name : {"python3", "python"}) {
    if (kind_of(folder / name) == FileKind::executable) return folder / name;
  }
  return std::nullopt;
}

// An acc that is installed in an environment uses its Python, whether the environment is active or not.
std::optional<Python> python_beside(const fs::path& called_as, const FileKindOf& kind_of) {
  const fs::path folder = called_as.parent_path();
  const auto has = [&](const char* name) { return kind_of(folder / ".." / name) != FileKind::missing; };
  if (folder.empty() || (!has("pyvenv.cfg") && !has("conda-meta"))) return std::nullopt;
  const auto file = python_in(folder, kind_of);
  if (!file) return std::nullopt;
  return Python{.word = file->string(), .file = *file, .origin = "beside " + called_as.string()};
}

std::optional<Python> python_on_path(const Environment& environment, const FileKindOf& kind_of) {
  for (const fs::path& folder : path_folders(environment)) {
    if (const auto file = python_in(folder, kind_of))
      return Python{.word = file->string(), .file = *file, .origin = "PATH"};
  }
  return std::nullopt;
}

std::optional<Python> python_of_variable(std::string_view home, const Environment& environment,
                                         const FileKindOf& kind_of) {
  const std::string prefix = environment.get(home);
  if (prefix.empty()) return std::nullopt;
  const auto file = python_in(fs::path(prefix) / "bin", kind_of);
  if (!file) return std::nullopt;
  return Python{.word = file->string(), .file = *file, .origin = std::string(home)};
}

WorkerProgram under_python(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of) {
  const Python python = find_python(request.python, environment, kind_of, request.caller);
  WorkerProgram program{.command = {python.word},
                        .file = python.file,
                        .problem = python.problem,
                        .python_origin = python.origin};
  if (request.unbuffered) program.command.emplace_back("-u");
  if (request.module && !request.run_path) program.command.emplace_back("-m");
  program.command.insert(program.command.end(), request.words.begin(), request.words.end());
  return program;
}

Problem refusal(const std::string& program, FileKind kind) {
  switch (kind) {
    case FileKind::directory:
    case FileKind::package:
      return {.what = "is a directory, not a program", .where = program};
    case FileKind::not_executable:
      return {.what = "is not executable", .where = program, .hint = "chmod +x " + program};
    case FileKind::other:
      return {.what = "is neither a binary nor a script that names what runs it",
              .where = program,
              .hint = "a script needs a first line like #!/bin/sh"};
    case FileKind::stream:
      return {.what = "is a pipe or a device, not a program", .where = program};
    case FileKind::unreadable:
      return {.what = "cannot be read", .where = program, .hint = "check its permissions"};
    default:
      return {
          .what = "no such program", .where = program, .hint = "paths are relative to the current folder"};
  }
}

Problem refusal_of_value(const ProgramRequest& request) {
  const std::string& word = request.words.front();
  return {.what = fmt::format("'{}' behind it would be the program", word),
          .where = "argument " + request.after_switch,
          .hint = fmt::format("the flag takes no value; `-- {}` runs the program", word)};
}

Problem refusal_of_notebook(const std::string& notebook) {
  return {.what = "is a notebook, not a program",
          .where = notebook,
          .hint = "make a script of it with `jupyter nbconvert --to script " + notebook +
                  "`, or start processes from within it with accelerate's notebook_launcher"};
}

}  // namespace

Python find_python(const std::string& requested, const Environment& environment, const FileKindOf& kind_of,
                   const Caller& caller) {
  if (!requested.empty()) return named_python(requested, "--python", environment, kind_of);
  if (const auto name = environment.find("PYTHON_EXEC"))
    return named_python(*name, "PYTHON_EXEC", environment, kind_of);
  if (!caller.python.empty())
    return {.word = caller.python.string(), .file = caller.python, .origin = caller.kept.string()};
  if (auto python = python_beside(caller.path, kind_of)) return *python;
  if (auto python = python_on_path(environment, kind_of)) return *python;
  for (const std::string_view home : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (auto python = python_of_variable(home, environment, kind_of)) return *python;
  }
  return {.word = "python3",
          .problem = Problem{.what = "no Python found: neither python3 nor python is on PATH",
                             .hint = "give one with --python"}};
}

FileKind kind_of_file(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return errno == EACCES ? FileKind::unreadable : FileKind::missing;
  if (S_ISDIR(status.st_mode)) {
    return ::access((path / "__main__.py").c_str(), R_OK) == 0 ? FileKind::package : FileKind::directory;
  }
  if (!S_ISREG(status.st_mode)) return FileKind::stream;
  const bool may_execute = ::access(path.c_str(), X_OK) == 0;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return may_execute ? FileKind::executable : FileKind::unreadable;
  std::array<char, 4> begin = {};
  const ssize_t n = ::read(fd, begin.data(), begin.size());
  ::close(fd);
  const std::string_view magic(begin.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!magic.starts_with("\x7f"
                         "ELF") &&
      !magic.starts_with("#!"))
    return FileKind::other;
  return may_execute ? FileKind::executable : FileKind::not_executable;
}

bool looks_like_value(const std::vector<std::string>& words) {
  return words.size() > 1 && (parse_truth(words.front()).has_value() || words.front() == "test");
}

WorkerProgram find_program(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of) {
  if (request.module && !request.run_path) return under_python(request, environment, kind_of);
  const std::string& name = request.words.front();
  if (name == "-" && !request.no_python) {
    WorkerProgram program = under_python(request, environment, kind_of);
    program.read_once = true;
    return program;
  }
  if (name.ends_with(".ipynb")) return {.command = request.words, .problem = refusal_of_notebook(name)};
  const bool is_script = request.run_path || name.ends_with(".py");
  const bool bare = name.find('/') == std::string::npos;
  const FileKind kind = name.empty() ? FileKind::missing : kind_of(name);

  // With --no_python a bare name is searched on PATH, as in a shell; otherwise a file in the current folder
  // takes precedence.
  if (bare && !is_script && (request.no_python || kind == FileKind::missing)) {
    if (!request.no_python && !request.after_switch.empty() && looks_like_value(request.words))
      return {.command = request.words, .problem = refusal_of_value(request)};
    if (const auto found = find_on_path(name, environment, kind_of))
      return {.command = request.words, .file = *found};
    if (request.no_python) {
      return {
          .command = request.words,
          .problem = Problem{
              .what = "no such program on PATH", .where = name, .hint = "for a file here write ./" + name}};
    }
  }
  const bool for_python = kind == FileKind::other || kind == FileKind::package || kind == FileKind::stream;
  const bool begins_with_name = kind == FileKind::executable || kind == FileKind::not_executable;
  const bool is_named_script = begins_with_name && request.is_python_script && request.is_python_script(name);
  const bool by_python =
      request.run_path || (!request.no_python && (is_script || for_python || is_named_script));
  if (by_python) {
    WorkerProgram program = under_python(request, environment, kind_of);
    if (!for_python && !begins_with_name) program.problem = refusal(name, kind);
    program.read_once = kind == FileKind::stream;
    return program;
  }
  WorkerProgram program{.command = request.words, .file = name};
  if (kind != FileKind::executable) program.problem = refusal(name, kind);
  return program;
}

}  // namespace acc::launcher
