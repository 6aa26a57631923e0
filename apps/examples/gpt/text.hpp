// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/data/datasets/base.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

/// Pieces of a text, each with the bytes that follow: a data set as LibTorch's loaders and acc's take it.
class TextPieces
    : public torch::data::datasets::BatchDataset<TextPieces, std::pair<torch::Tensor, torch::Tensor>> {
 public:
  /// Of `bytes`, a one-dimensional tensor of integers, pieces of `length` that do not overlap.
  TextPieces(torch::Tensor bytes, std::int64_t length);

  /// Pieces as [n, length], and what follows each of their bytes in the same shape.
  std::pair<torch::Tensor, torch::Tensor> get_batch(c10::ArrayRef<std::size_t> indices) override;
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(pieces_.size(0)); }

 private:
  torch::Tensor pieces_;
  torch::Tensor next_;
};

struct Text {
  TextPieces train;
  TextPieces test;
};

/// The bytes of a file, or of all files in a folder in the order of their names: of each the first nine
/// tenths to train on, the rest to test. Throws acc::Error if there is no file, or too little in them.
Text load_text(const std::filesystem::path& path, std::int64_t length);
