// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/data/datasets/base.h>

#include <filesystem>
#include <optional>
#include <utility>

/// Images and their classes in memory: a data set as LibTorch's loaders and acc's take it.
class Images : public torch::data::datasets::BatchDataset<Images, std::pair<torch::Tensor, torch::Tensor>> {
 public:
  /// `images` as [n, channels, side, side], `labels` as [n].
  Images(torch::Tensor images, torch::Tensor labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  std::pair<torch::Tensor, torch::Tensor> get_batch(c10::ArrayRef<std::size_t> indices) override;
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(images_.size(0)); }

  std::int64_t channels() const { return images_.size(1); }
  std::int64_t side() const { return images_.size(2); }

 private:
  torch::Tensor images_;
  torch::Tensor labels_;
};

struct Data {
  Images train;
  Images test;
};

/// CIFAR-10 where `folder` holds its binary files, else MNIST from its four files, .gz or not. Without a
/// folder the 5,000 digits that come with the examples. Throws acc::Error naming what is missing.
Data load_data(const std::filesystem::path& folder = {});
