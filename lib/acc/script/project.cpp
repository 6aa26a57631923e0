// SPDX-License-Identifier: Apache-2.0
#include "acc/script/project.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxName = 64;

// Targets that CMake has in every project, those of LibTorch's package and of what acc's source is built
// with, and the other one of the template.
constexpr std::string_view kTakenNames =
    "all clean depend edit_cache help install list_install_components package package_source "
    "rebuild_cache test caffe2_nvrtc c10 c10_cuda tensorpipe tensorpipe_cuda tensorpipe_uv torch torch_cpu "
    "torch_cpu_library torch_cuda torch_cuda_library torch_library fmt nlohmann_json sodium spdlog yaml-cpp "
    "model_test";

bool is_word(std::string_view name) {
  const auto is_letter = [](char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); };
  return !name.empty() && name.size() <= kMaxName && is_letter(name.front()) &&
         std::ranges::all_of(
             name, [&](char c) { return is_letter(c) || ('0' <= c && c <= '9') || c == '_' || c == '-'; });
}

void require_new_folder(const fs::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) return;
  const auto refuse = [&](const std::string& what) {
    throw Error({.what = what, .where = folder.string(), .hint = "name a new folder"});
  };
  if (!S_ISDIR(status.st_mode)) refuse("is there already, and is not a folder");
  std::error_code error;
  const bool is_empty = fs::is_empty(folder, error);
  if (error) throw_errno(folder, "cannot be read", error.value());
  if (!is_empty) refuse("is there already, and is not empty");
  if (fs::equivalent(folder, current_folder())) refuse("is the current folder");
}

// A folder beside the one to write, which takes its place at the end; otherwise it is removed, with the
// parents that were made for it.
class Staging {
 public:
  explicit Staging(const fs::path& folder) {
    std::error_code error;
    for (fs::path parent = folder.parent_path(); !fs::exists(parent, error); parent = parent.parent_path())
      made_.push_back(parent);
    path_ = folder.parent_path() / fmt::format(".{}.acc-{}", folder.filename().string(), ::getpid());
    fs::create_directories(folder.parent_path(), error);
    if (!error) fs::create_directory(path_, error);
    if (error) {
      remove();
      throw_errno(folder, "cannot be created", error.value());
    }
  }
  ~Staging() {
    if (!kept_) remove();
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const fs::path& path() const { return path_; }

  void take_place_of(const fs::path& folder) {
    if (::rename(path_.c_str(), folder.c_str()) != 0) throw_errno(folder, "cannot be created", errno);
    kept_ = true;
  }

 private:
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    for (const fs::path& parent : made_)
      fs::remove(parent, ignored);  // unless others have put something there
  }

  std::vector<fs::path> made_ = {};
  fs::path path_ = {};
  bool kept_ = false;
};

}  // namespace

std::string fill_in(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t begin = text.find('@');
    filled += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = text.find('@', 1);
    const auto value =
        end == std::string_view::npos ? values.end() : values.find(std::string(text.substr(1, end - 1)));
    filled += value == values.end() ? "@" : value->second;
    text.remove_prefix(value == values.end() ? 1 : end + 1);
  }
  return filled;
}

std::string project_name(const fs::path& folder) {
  const std::string name = resolved_path(folder).filename().string();
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error({.what = fmt::format("'{}' {}", shorten(name), why),
                 .where = shorten(folder.string()),
                 .hint = hint});
  };
  if (!is_word(name)) {
    refuse("cannot be the name of a program",
           fmt::format("at most {} letters, digits, _ and -, a letter first", kMaxName));
  }
  const bool is_ours = name == "acc" || name.starts_with("acc_") || name.starts_with("acc-");
  if (is_ours || contains(split(kTakenNames, ' '), to_lower(name)))
    refuse("is a name that CMake, LibTorch or acc uses itself", "choose another one");
  return name;
}

void write_project(const fs::path& folder, std::span<const ProjectFile> files) {
  require_new_folder(folder);
  const fs::path target = resolved_path(folder);
  Staging staging(target);
  for (const ProjectFile& file : files) replace_file(staging.path() / file.path, file.text);
  staging.take_place_of(target);
}

}  // namespace acc::launcher
