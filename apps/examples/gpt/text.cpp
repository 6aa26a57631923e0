// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"

namespace {

namespace fs = std::filesystem;

// Without links: they lead to files that are in the folder anyway.
std::vector<fs::path> files_at(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (fs::is_regular_file(entry.symlink_status())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

torch::Tensor bytes_of(std::string text) {
  return at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte).to(at::kLong);
}

}  // namespace

TextPieces::TextPieces(torch::Tensor bytes, std::int64_t length) {
  // The last byte of a piece is followed by the first of the next.
  const std::int64_t count = (bytes.size(0) - 1) / length;
  pieces_ = bytes.narrow(0, 0, count * length).view({count, length});
  next_ = bytes.narrow(0, 1, count * length).view({count, length});
}

std::pair<torch::Tensor, torch::Tensor> TextPieces::get_batch(c10::ArrayRef<std::size_t> indices) {
  return {acc::take_rows(pieces_, indices), acc::take_rows(next_, indices)};
}

Text load_text(const fs::path& path, std::int64_t length) {
  std::vector<torch::Tensor> train;
  std::vector<torch::Tensor> test;
  for (const fs::path& file : files_at(path)) {
    const torch::Tensor bytes = bytes_of(acc::read_file(file));
    const std::int64_t part = bytes.size(0) / 10 * 9;
    train.push_back(bytes.narrow(0, 0, part));
    test.push_back(bytes.narrow(0, part, bytes.size(0) - part));
  }
  Text text{.train = TextPieces(train.empty() ? bytes_of(" ") : at::cat(train), length),
            .test = TextPieces(test.empty() ? bytes_of(" ") : at::cat(test), length)};
  if (*text.train.size() == 0 || *text.test.size() == 0) {
    throw acc::Error(
        {.what = "holds too little text",
         .where = path.string(),
         .hint = "give a file or folder with more than " + std::to_string(10 * (length + 1)) + " bytes"});
  }
  return text;
}
