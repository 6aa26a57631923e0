// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/cifar_file.hpp"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {
namespace {

constexpr std::size_t kPixels = 3072;
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

// Labels come before an image's pixels, the finest last.
struct Format {
  std::size_t label_bytes = 1;
  int classes = 10;
};

[[noreturn]] void fail(const std::filesystem::path& file, std::string what) {
  throw Error({.kind = ErrorKind::system,
               .what = std::move(what),
               .where = file.string(),
               .hint = "the binary version of the data set is needed"});
}

LabelledImages read(const std::vector<std::filesystem::path>& files, const Format& format) {
  const std::size_t record = format.label_bytes + kPixels;
  std::vector<std::string> parts;
  std::size_t count = 0;
  for (const auto& file : files) {
    parts.push_back(read_file(file, kMostBytes));
    const std::size_t size = parts.back().size();
    if (size == 0 || size % record != 0)
      fail(file, fmt::format("its {} bytes are no whole number of images of {} bytes", size, record));
    count += size / record;
  }
  const auto rows = static_cast<std::int64_t>(count);
  LabelledImages all{.images = at::empty({rows, 3, 32, 32}, at::TensorOptions(at::kByte)),
                     .labels = at::empty({rows}, at::TensorOptions(at::kLong))};
  auto* pixels = all.images.mutable_data_ptr<std::uint8_t>();
  auto* label = all.labels.mutable_data_ptr<std::int64_t>();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t at = 0; at < parts[part].size(); at += record, pixels += kPixels) {
      *label = static_cast<unsigned char>(parts[part][at + format.label_bytes - 1]);
      if (*label >= format.classes)
        fail(files[part], fmt::format("has label {}, but there are {} classes", *label, format.classes));
      ++label;
      std::memcpy(pixels, parts[part].data() + at + format.label_bytes, kPixels);
    }
  }
  return all;
}

}  // namespace

LabelledImages read_cifar10(const std::filesystem::path& folder, bool train) {
  if (!train) return read({folder / "test_batch.bin"}, {});
  std::vector<std::filesystem::path> files;
  for (int i = 1; i <= 5; ++i) files.push_back(folder / fmt::format("data_batch_{}.bin", i));
  return read(files, {});
}

LabelledImages read_cifar100(const std::filesystem::path& folder, bool train) {
  return read({folder / (train ? "train.bin" : "test.bin")}, {.label_bytes = 2, .classes = 100});
}

}  // namespace acc
