// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/data/images/image_transforms.hpp"

namespace acc {

/// Image files and the class of each: files[i] is of classes[labels[i]].
struct ImageFiles {
  std::vector<std::filesystem::path> files = {};  ///< Their paths.
  std::vector<std::int64_t> labels = {};          ///< Indices in `classes`.
  /// Sorted by name.
  std::vector<std::string> classes = {};
};

/// Lists the .jpg, .jpeg and .png files below `root`, in which each folder is a class; files and classes have
/// the order of torchvision's ImageFolder. Throws Error{system} when `root` cannot be read, has no folders,
/// or one of them contains no such file.
ImageFiles image_folder(const std::filesystem::path& root);

/// Lists such files of the folder itself, sorted by name. The class of a file is what the first group of
/// `pattern`, an ECMAScript regular expression, matches in its name, as in "^(.*)_\\d+[.]jpg$". Throws
/// Error{usage} for an invalid expression or one without a group, Error{system} for a folder without images
/// and for a file whose name does not match.
ImageFiles labelled_images(const std::filesystem::path& folder, const std::string& pattern);

/// What to do with images that cannot be read.
enum class BrokenImages {
  refuse,  ///< reading it throws an Error that names the file
  skip,    ///< the next file that can be read is used instead, so that batches stay full
};

/// How an ImageDataset reads images.
struct ImageDatasetOptions {
  /// Applied to each image in order. The resulting images of a batch must have the same size.
  std::vector<ImageTransform> transforms = {};
  /// If set, batches are float32 and normalised, otherwise uint8.
  std::optional<Normalize> normalize = {};
  /// See DecodeOptions.
  std::int64_t draft_size = 0;
  BrokenImages broken = BrokenImages::refuse;  ///< What to do with images that cannot be read.
};

/// Images in files, which are read on demand: `for (auto& [images, labels] : loader)`. Images are
/// [n, 3, height, width], labels int64. Any number of threads may read at once.
class ImageDataset {
 public:
  using Batch = std::array<at::Tensor, 2>;  ///< Images and labels.

  /// Throws Error{usage} when there are no files or not as many labels, and for a std of 0.
  explicit ImageDataset(ImageFiles files, ImageDatasetOptions options = {});

  std::size_t size() const { return files_->files.size(); }  ///< The number of files.
  /// The names of the classes, by label.
  const std::vector<std::string>& classes() const { return files_->classes; }

  /// Throws Error{system} naming the file, for one that cannot be read.
  Batch get_batch(c10::ArrayRef<std::size_t> indices) const;

  /// The errors of the files that have been skipped so far.
  std::vector<std::string> skipped() const;

 private:
  struct Skipped;

  at::Tensor read(std::size_t index) const;
  // Reads image `index`, or the next one that can be read, and returns its index.
  std::size_t read_or_next(std::size_t index, at::Tensor& image) const;

  // Copies share the files and the list of skipped ones.
  std::shared_ptr<const ImageFiles> files_;
  ImageDatasetOptions options_;
  std::shared_ptr<Skipped> skipped_;
};

}  // namespace acc
