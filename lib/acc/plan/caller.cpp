// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/caller.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kZip = "PK\x03\x04";

std::vector<fs::path> with_link_targets(fs::path file) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  std::vector<fs::path> files = {file};
  for (int link = 0; link < kMaxLinks; ++link) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(file, no_link);
    if (no_link) break;
    file = file.parent_path() / next;
    files.push_back(file);
  }
  return files;
}

bool is_executable(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

bool is_kept_program(const fs::path& file) {
  std::error_code ignored;
  return is_executable(file) && !fs::equivalent(file, "/proc/self/exe", ignored);
}

bool is_in_environment(const fs::path& file) {
  const fs::path prefix = file.parent_path() / "..";
  std::error_code ignored;
  return fs::exists(prefix / "pyvenv.cfg", ignored) || fs::exists(prefix / "conda-meta", ignored);
}

std::string beginning_of(const fs::path& file) {
  std::string text(4096, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

bool names_python(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

// `'''exec' "/a path/python" "$0" "$@"`, which is a text for Python and a command for sh.
std::string python_of_sh(std::string_view line) {
  constexpr std::string_view kExec = "'''exec' ";
  if (!line.starts_with(kExec)) return "";
  std::string_view word = trim(line.substr(kExec.size()));
  const std::size_t end = word.rfind(" \"$0\"");
  if (end == std::string_view::npos) return "";
  word = trim(word.substr(0, end));
  if (word.size() > 1 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front())
    word = word.substr(1, word.size() - 2);
  return std::string(word);
}

}  // namespace

fs::path find_kept_program(const fs::path& called_as, const std::string& name) {
  for (const fs::path& file : with_link_targets(called_as)) {
    fs::path kept = file.parent_path() / (name + ".before-acc");
    if (is_kept_program(kept)) return kept;
  }
  return {};
}

Caller caller_under_name(const fs::path& called_as, const std::string& name) {
  Caller caller{.path = called_as};
  const fs::path start = absolute_path(called_as);
  const fs::path kept = find_kept_program(start, name);
  const fs::path python = kept.empty() ? "" : python_of_script(beginning_of(kept));
  if (python.is_absolute() && is_executable(python)) {
    caller.kept = kept;
    caller.python = python;
  }
  const std::vector<fs::path> files = with_link_targets(start);
  const auto of_environment = std::ranges::find_if(files, [&](const fs::path& file) {
    return file.filename() == start.filename() && is_in_environment(file);
  });
  if (of_environment != files.end()) caller.path = *of_environment;
  return caller;
}

std::string python_of_script(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return "";
  const std::vector<std::string> lines = split(beginning.substr(2), '\n');
  for (const std::string& word : split(trim(lines.front()), ' ')) {
    if (names_python(word)) return word;
  }
  return lines.size() > 1 ? python_of_sh(lines[1]) : "";
}

fs::path interpreter_of_script(const fs::path& file) {
  const std::string beginning = beginning_of(file);
  if (!beginning.starts_with("#!")) return {};
  if (const fs::path python = python_of_script(beginning); python.is_absolute()) return python;
  const std::string first_line = split(beginning.substr(2), '\n').front();
  return split(trim(first_line), ' ').front();
}

bool is_python_script(const fs::path& file) {
  const std::string beginning = beginning_of(file);
  const std::size_t line_end = beginning.find('\n');
  const bool is_zip = beginning.starts_with("#!") && line_end != std::string::npos &&
                      std::string_view(beginning).substr(line_end + 1).starts_with(kZip);
  return is_zip || !python_of_script(beginning).empty();
}

}  // namespace acc::launcher
