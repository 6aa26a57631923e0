// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/data/images/image_files.hpp"
#include "acc/runtime/data/images/image_transforms.hpp"

namespace acc {

/// What becomes of an image that cannot be read.
enum class BrokenImages {
  refuse,  ///< reading it throws an Error that names the file
  skip,    ///< the next file that can be read stands in for it, so that batches stay full
};

struct ImageDatasetOptions {
  /// Applied to each image in turn; what comes out must have one size in a batch.
  std::vector<ImageTransform> transforms = {};
  /// With it batches are float32 and normalised, without it uint8.
  std::optional<Normalize> normalize = {};
  /// See DecodeOptions.
  std::int64_t draft_size = 0;
  BrokenImages broken = BrokenImages::refuse;
};

/// Images in files, read when they are asked for: `for (auto& [images, labels] : loader)`. Images are
/// [n, 3, height, width], labels int64. Any number of threads may read at once.
class ImageDataset {
 public:
  using Batch = std::array<at::Tensor, 2>;

  /// Throws Error{usage} when there are no files or not as many labels.
  explicit ImageDataset(ImageFiles files, ImageDatasetOptions options = {});

  std::size_t size() const { return files_->files.size(); }
  const std::vector<std::string>& classes() const { return files_->classes; }

  /// Throws Error{system} naming the file, for one that cannot be read.
  Batch get_batch(c10::ArrayRef<std::size_t> indices) const;

  /// Files that were skipped so far, each with what is wrong with it.
  std::vector<std::string> skipped() const;

 private:
  struct Skipped;

  at::Tensor read(std::size_t index) const;
  // The first from `index` on that can be read.
  std::size_t read_or_next(std::size_t index, at::Tensor& image) const;

  // Shared by copies.
  std::shared_ptr<const ImageFiles> files_;
  ImageDatasetOptions options_;
  std::shared_ptr<Skipped> skipped_;
};

}  // namespace acc
