// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& file) {
  const std::string extension = to_lower(file.extension().string());
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

[[noreturn]] void fail(const fs::path& where, std::string what, std::string hint = {}) {
  throw Error(
      {.kind = ErrorKind::system, .what = std::move(what), .where = where.string(), .hint = std::move(hint)});
}

// All that `Iterator` finds and `wanted` takes, in the order of folders and then of names.
template <class Iterator, class Wanted>
std::vector<fs::path> list(const fs::path& folder, Wanted wanted) {
  std::vector<fs::path> found;
  try {
    for (const fs::directory_entry& entry :
         Iterator(folder, fs::directory_options::follow_directory_symlink)) {
      if (wanted(entry)) found.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    fail(folder, fmt::format("cannot be read: {}", error.code().message()));
  }
  std::sort(found.begin(), found.end(), [](const fs::path& one, const fs::path& other) {
    const std::string a = one.parent_path().string();
    const std::string b = other.parent_path().string();
    return a != b ? a < b : one.filename().string() < other.filename().string();
  });
  return found;
}

bool is_image_file(const fs::directory_entry& entry) {
  return entry.is_regular_file() && is_image(entry.path());
}

std::regex compile(const std::string& pattern) {
  const auto refuse = [&](std::string what) {
    throw Error({.what = std::move(what), .where = fmt::format("the pattern '{}'", pattern)});
  };
  std::regex expression;
  try {
    expression.assign(pattern);
  } catch (const std::regex_error& error) {
    refuse(fmt::format("is no regular expression: {}", error.what()));
  }
  if (expression.mark_count() == 0) refuse("has no group that is the label");
  return expression;
}

}  // namespace

ImageFiles image_folder(const fs::path& root) {
  ImageFiles images;
  const auto folders = list<fs::directory_iterator>(
      root, [](const fs::directory_entry& entry) { return entry.is_directory(); });
  if (folders.empty()) fail(root, "has no folders", "each class of images is a folder of its name");
  for (const fs::path& folder : folders) {
    const auto files = list<fs::recursive_directory_iterator>(folder, is_image_file);
    if (files.empty()) fail(folder, "holds no .jpg, .jpeg or .png files");
    images.files.insert(images.files.end(), files.begin(), files.end());
    images.labels.insert(images.labels.end(), files.size(), static_cast<std::int64_t>(images.classes.size()));
    images.classes.push_back(folder.filename().string());
  }
  return images;
}

ImageFiles labelled_images(const fs::path& folder, const std::string& pattern) {
  const std::regex expression = compile(pattern);
  ImageFiles images{.files = list<fs::directory_iterator>(folder, is_image_file)};
  if (images.files.empty()) fail(folder, "holds no .jpg, .jpeg or .png files");
  std::vector<std::string> names;
  for (const fs::path& file : images.files) {
    const std::string name = file.filename().string();
    std::smatch match;
    if (!std::regex_search(name, match, expression))
      fail(file, fmt::format("has no label: the pattern '{}' finds nothing in its name", pattern));
    names.push_back(match[1]);
  }
  const std::set<std::string> classes(names.begin(), names.end());
  images.classes.assign(classes.begin(), classes.end());
  for (const std::string& name : names) {
    const auto place = std::lower_bound(images.classes.begin(), images.classes.end(), name);
    images.labels.push_back(place - images.classes.begin());
  }
  return images;
}

}  // namespace acc
