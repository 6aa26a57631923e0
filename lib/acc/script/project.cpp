// SPDX-License-Identifier: Apache-2.0
#include "acc/script/project.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
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

// Writes a project elsewhere first. A new folder is written beside its path and then renamed. In one that is
// there, which keeps its owner, mode and ACLs, it is a hidden folder, whose entries are then moved up. What
// was not published is removed, with the parents that were made for it.
class Staging {
 public:
  explicit Staging(const fs::path& folder) : target_(folder) {
    std::error_code error;
    for (fs::path parent = folder.parent_path(); !fs::exists(parent, error); parent = parent.parent_path())
      made_.push_back(parent);
    exists_ = fs::is_directory(folder, error);
    const std::string suffix = fmt::format("acc-{:08x}", random_number());
    path_ = exists_ ? folder / ("." + suffix)
                    : folder.parent_path() / fmt::format(".{}.{}", folder.filename().string(), suffix);
    fs::create_directories(folder.parent_path(), error);
    if (!error) fs::create_directory(path_, error);
    if (error) {
      remove();
      throw_errno(folder, exists_ ? "cannot be written" : "cannot be created", error.value());
    }
  }
  ~Staging() { remove(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const fs::path& path() const { return path_; }

  void publish() {
    if (exists_) {
      for (const auto& entry : fs::directory_iterator(path_)) names_.push_back(entry.path().filename());
      for (; moved_ < names_.size(); ++moved_) move_up(names_[moved_]);
    } else if (::rename(path_.c_str(), target_.c_str()) != 0) {
      throw_errno(target_, "cannot be created", errno);
    }
    moved_ = 0;
    made_.clear();
  }

 private:
  // What another process has written meanwhile is not replaced.
  void move_up(const fs::path& name) {
    const fs::path file = target_ / name;
    int failed = ::renameat2(AT_FDCWD, (path_ / name).c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE);
    if (failed != 0 && (errno == EINVAL || errno == ENOSYS))
      failed = ::rename((path_ / name).c_str(), file.c_str());
    if (failed != 0) throw_errno(file, "cannot be created", errno);
  }

  void remove() const {
    std::error_code ignored;
    for (std::size_t i = 0; i < moved_; ++i) fs::remove_all(target_ / names_[i], ignored);
    fs::remove_all(path_, ignored);
    for (const fs::path& parent : made_)
      fs::remove(parent, ignored);  // unless others have put something there
  }

  fs::path target_ = {};
  bool exists_ = false;
  std::vector<fs::path> made_ = {};
  fs::path path_ = {};
  std::vector<fs::path> names_ = {};
  std::size_t moved_ = 0;
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
  // A link is called by its own name. `.` and `..` have none.
  fs::path last = without_trailing_slash(folder).filename();
  if (last.empty() || last == "." || last == "..") last = resolved_path(folder).filename();
  const std::string name = last.string();
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
  staging.publish();
}

}  // namespace acc::launcher
