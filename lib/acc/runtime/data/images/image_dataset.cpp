// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_dataset.hpp"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/images/image.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& file) {
  const std::string extension = to_lower(file.extension().string());
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

[[noreturn]] void refuse_folder(const fs::path& where, std::string what, std::string hint = {}) {
  throw Error(
      {.kind = ErrorKind::system, .what = std::move(what), .where = where.string(), .hint = std::move(hint)});
}

// All entries of `folder` that `accepts` takes, sorted by folder and name.
template <class Iterator, class Accepts>
std::vector<fs::path> list(const fs::path& folder, Accepts accepts) {
  std::vector<fs::path> paths;
  try {
    for (const fs::directory_entry& entry :
         Iterator(folder, fs::directory_options::follow_directory_symlink)) {
      if (accepts(entry)) paths.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    refuse_folder(folder, fmt::format("cannot be read: {}", error.code().message()));
  }
  std::sort(paths.begin(), paths.end(), [](const fs::path& one, const fs::path& other) {
    const std::string a = one.parent_path().string();
    const std::string b = other.parent_path().string();
    return a != b ? a < b : one.filename().string() < other.filename().string();
  });
  return paths;
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
    refuse(fmt::format("is not a regular expression: {}", error.what()));
  }
  if (expression.mark_count() == 0) refuse("has no group, which would be the label");
  return expression;
}

}  // namespace

ImageFiles image_folder(const fs::path& root) {
  ImageFiles images;
  const auto folders = list<fs::directory_iterator>(
      root, [](const fs::directory_entry& entry) { return entry.is_directory(); });
  if (folders.empty())
    refuse_folder(root, "has no folders",
                  "put the images of each class into a folder with the name of the class");
  for (const fs::path& folder : folders) {
    const auto files = list<fs::recursive_directory_iterator>(folder, is_image_file);
    if (files.empty()) refuse_folder(folder, "contains no .jpg, .jpeg or .png files");
    images.files.insert(images.files.end(), files.begin(), files.end());
    images.labels.insert(images.labels.end(), files.size(), static_cast<std::int64_t>(images.classes.size()));
    images.classes.push_back(folder.filename().string());
  }
  return images;
}

ImageFiles labelled_images(const fs::path& folder, const std::string& pattern) {
  const std::regex expression = compile(pattern);
  ImageFiles images{.files = list<fs::directory_iterator>(folder, is_image_file)};
  if (images.files.empty()) refuse_folder(folder, "contains no .jpg, .jpeg or .png files");
  std::vector<std::string> names;
  for (const fs::path& file : images.files) {
    const std::string name = file.filename().string();
    std::smatch match;
    if (!std::regex_search(name, match, expression))
      refuse_folder(file, fmt::format("has no label: the pattern '{}' does not match its name", pattern));
    names.push_back(match[1]);
  }
  const std::set<std::string> classes(names.begin(), names.end());
  images.classes.assign(classes.begin(), classes.end());
  for (const std::string& name : names) {
    const auto match = std::ranges::lower_bound(images.classes, name);
    images.labels.push_back(match - images.classes.begin());
  }
  return images;
}

struct ImageDataset::Skipped {
  std::mutex mutex = {};
  std::map<std::size_t, std::string> reasons = {};
};

ImageDataset::ImageDataset(ImageFiles files, ImageDatasetOptions options)
    : files_(std::make_shared<const ImageFiles>(std::move(files))),
      options_(std::move(options)),
      skipped_(std::make_shared<Skipped>()) {
  if (options_.normalize) detail::require_finite(*options_.normalize);
  if (files_->files.empty()) throw Error({.what = "there are no images", .where = "ImageDataset"});
  if (files_->labels.size() != files_->files.size()) {
    throw Error({.what = fmt::format("{} files need as many labels, not {}", files_->files.size(),
                                     files_->labels.size()),
                 .where = "ImageDataset"});
  }
}

at::Tensor ImageDataset::read(std::size_t index) const {
  at::Tensor image = read_image(files_->files.at(index), {.draft_size = options_.draft_size});
  SampleRandom random(index);
  for (const ImageTransform& transform : options_.transforms) image = transform(image, random);
  return image;
}

std::size_t ImageDataset::read_or_next(std::size_t index, at::Tensor& image) const {
  for (std::size_t step = 0;; ++step) {
    const std::size_t candidate = (index + step) % size();
    try {
      image = read(candidate);
      return candidate;
    } catch (const Error& error) {
      // Only system errors mean that the image is broken; others are errors of a transform.
      if (options_.broken == BrokenImages::refuse || error.kind() != ErrorKind::system) throw;
      const std::scoped_lock lock(skipped_->mutex);
      skipped_->reasons.try_emplace(candidate, error.what());
      if (step + 1 == size()) throw;
    }
  }
}

ImageDataset::Batch ImageDataset::get_batch(c10::ArrayRef<std::size_t> indices) const {
  const detail::OneCore one_core;
  std::vector<at::Tensor> images(indices.size());
  const at::Tensor labels =
      at::empty({static_cast<std::int64_t>(indices.size())}, at::TensorOptions(at::kLong));
  auto* label = labels.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < indices.size(); ++i)
    *label++ = files_->labels[read_or_next(indices[i], images[i])];
  return {options_.normalize ? stack_images(images, *options_.normalize) : stack_images(images), labels};
}

std::vector<std::string> ImageDataset::skipped() const {
  const std::scoped_lock lock(skipped_->mutex);
  std::vector<std::string> reasons;
  for (const auto& [index, reason] : skipped_->reasons) reasons.push_back(reason);
  return reasons;
}

}  // namespace acc
