// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_dataset.hpp"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "acc/runtime/data/one_core.hpp"

namespace acc {

struct ImageDataset::Skipped {
  std::mutex mutex = {};
  std::map<std::size_t, std::string> reasons = {};
};

ImageDataset::ImageDataset(ImageFiles files, ImageDatasetOptions options)
    : files_(std::make_shared<const ImageFiles>(std::move(files))),
      options_(std::move(options)),
      skipped_(std::make_shared<Skipped>()) {
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
    const std::size_t at = (index + step) % size();
    try {
      image = read(at);
      return at;
    } catch (const Error& error) {
      // A transform that does not fit is no broken image.
      if (options_.broken == BrokenImages::refuse || error.kind() != ErrorKind::system) throw;
      const std::scoped_lock lock(skipped_->mutex);
      skipped_->reasons.try_emplace(at, error.what());
      if (step + 1 == size()) throw;
    }
  }
}

ImageDataset::Batch ImageDataset::get_batch(c10::ArrayRef<std::size_t> indices) const {
  const OneCore one_core;
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
