// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/program.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_on_path(const std::string& name, const Environment& environment,
                                     const FileKindOf& kind_of) {
  for (const std::string& folder : split(environment.get("PATH", "/usr/local/bin:/usr/bin:/bin"), ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (kind_of(candidate) == FileKind::executable) return candidate;
  }
  return std::nullopt;
}

// A name that somebody gave on purpose: it must be there.
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
  return {.word = name, .file = *file};
}

WorkerProgram under_python(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of) {
  const Python python = find_python(request.python, environment, kind_of);
  WorkerProgram program{.command = {python.word}, .file = python.file, .problem = python.problem};
  if (request.unbuffered) program.command.emplace_back("-u");
  if (request.module && !request.run_path) program.command.emplace_back("-m");
  program.command.insert(program.command.end(), request.words.begin(), request.words.end());
  return program;
}

Problem refusal(const std::string& program, FileKind kind) {
  switch (kind) {
    case FileKind::directory:
      return {.what = "is a directory, not a program", .where = program};
    case FileKind::not_executable:
      return {.what = "is not executable", .where = program, .hint = "chmod +x " + program};
    case FileKind::unreadable:
      return {.what = "cannot be read", .where = program, .hint = "check its permissions"};
    default:
      return {
          .what = "no such program", .where = program, .hint = "paths are relative to the current folder"};
  }
}

}  // namespace

Python find_python(const std::string& asked, const Environment& environment, const FileKindOf& kind_of) {
  if (!asked.empty()) return named_python(asked, "--python", environment, kind_of);
  if (const auto name = environment.find("PYTHON_EXEC"))
    return named_python(*name, "PYTHON_EXEC", environment, kind_of);
  for (const std::string_view home : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = environment.get(home);
    if (prefix.empty()) continue;
    const fs::path file = fs::path(prefix) / "bin" / "python";
    if (kind_of(file) == FileKind::executable) return {.word = file.string(), .file = file};
  }
  for (const std::string name : {"python3", "python"}) {
    if (const auto file = find_on_path(name, environment, kind_of))
      return {.word = file->string(), .file = *file};
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
  const bool may_execute = ::access(path.c_str(), X_OK) == 0;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

WorkerProgram find_program(const ProgramRequest& request, const Environment& environment,
                           const FileKindOf& kind_of) {
  if (request.module && !request.run_path) return under_python(request, environment, kind_of);
  const std::string& name = request.words.front();
  const bool is_script = request.run_path || name.ends_with(".py");
  const bool bare = name.find('/') == std::string::npos;
  FileKind kind = name.empty() ? FileKind::missing : kind_of(name);

  // As a shell does it, a bare name for --no_python means PATH; otherwise a file of that name here goes
  // first.
  if (bare && !is_script && (request.no_python || kind == FileKind::missing)) {
    if (const auto found = find_on_path(name, environment, kind_of))
      return {.command = request.words, .file = *found};
    if (request.no_python) {
      return {
          .command = request.words,
          .problem = Problem{
              .what = "no such program on PATH", .where = name, .hint = "for a file here write ./" + name}};
    }
  }
  const bool by_python =
      request.run_path ||
      (!request.no_python && (is_script || kind == FileKind::other || kind == FileKind::package));
  if (by_python) {
    WorkerProgram program = under_python(request, environment, kind_of);
    const bool runs = kind == FileKind::other || kind == FileKind::package || kind == FileKind::executable ||
                      kind == FileKind::not_executable;
    if (!runs) program.problem = refusal(name, kind);
    return program;
  }
  WorkerProgram program{.command = request.words, .file = name};
  if (request.no_python && kind == FileKind::other) kind = FileKind::not_executable;
  if (kind != FileKind::executable) program.problem = refusal(name, kind);
  return program;
}

}  // namespace acc
