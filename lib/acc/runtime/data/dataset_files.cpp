// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/dataset_files.hpp"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {
namespace {

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using Gz = std::unique_ptr<gzFile_s, CloseGz>;

[[noreturn]] void refuse_data(const std::filesystem::path& file, std::string what) {
  throw Error({.kind = ErrorKind::system, .what = std::move(what), .where = file.string()});
}

// zlib also reads files that are not compressed.
Gz open(const std::filesystem::path& file) {
  errno = 0;
  Gz gz(gzopen(file.c_str(), "rb"));
  if (!gz) refuse_data(file, fmt::format("cannot be read: {}", std::strerror(errno)));
  return gz;
}

std::size_t read_some(gzFile gz, char* to, std::size_t size, const std::filesystem::path& file) {
  const int got = gzread(gz, to, static_cast<unsigned>(std::min(size, std::size_t{1} << 20U)));
  if (got >= 0) return static_cast<std::size_t>(got);
  int code = 0;
  refuse_data(file, fmt::format("cannot be read: {}", gzerror(gz, &code)));
}

// Reads up to `size` bytes: a wrong header cannot allocate more memory than the file has bytes.
std::string read_up_to(gzFile gz, std::size_t size, const std::filesystem::path& file) {
  std::string text;
  while (text.size() < size) {
    const std::size_t old = text.size();
    text.resize(old + std::min(size - old, std::size_t{1} << 20U));
    const std::size_t got = read_some(gz, text.data() + old, text.size() - old, file);
    text.resize(old + got);
    if (got == 0) break;
  }
  return text;
}

std::optional<at::ScalarType> type_of(unsigned char code) {
  switch (code) {
    case 0x08:
      return at::kByte;
    case 0x09:
      return at::kChar;
    case 0x0b:
      return at::kShort;
    case 0x0c:
      return at::kInt;
    case 0x0d:
      return at::kFloat;
    case 0x0e:
      return at::kDouble;
    default:
      return std::nullopt;
  }
}

struct Header {
  at::ScalarType type = at::kByte;
  std::vector<std::int64_t> shape = {};
  std::size_t bytes = 0;
};

Header read_idx_header(gzFile gz, const std::filesystem::path& file) {
  const std::string magic = read_up_to(gz, 4, file);
  const auto type = magic.size() == 4 ? type_of(static_cast<unsigned char>(magic[2])) : std::nullopt;
  if (!type || magic[0] != 0 || magic[1] != 0 || magic[3] <= 0) refuse_data(file, "is not an IDX file");
  const auto dimensions = static_cast<std::size_t>(static_cast<unsigned char>(magic[3]));
  const std::string sizes = read_up_to(gz, 4 * dimensions, file);
  if (sizes.size() < 4 * dimensions) refuse_data(file, "ends within its header");
  Header header{.type = *type, .bytes = c10::elementSize(*type)};
  for (std::size_t i = 0; i < dimensions; ++i) {
    std::uint32_t size = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
      size = size << 8U | static_cast<unsigned char>(sizes[4 * i + byte]);
    header.shape.push_back(size);
    if (__builtin_mul_overflow(header.bytes, std::size_t{size}, &header.bytes))
      refuse_data(file, "has impossible sizes");
  }
  return header;
}

}  // namespace

at::Tensor read_idx(const std::filesystem::path& file) {
  const Gz gz = open(file);
  const Header header = read_idx_header(gz.get(), file);
  std::string data = read_up_to(gz.get(), header.bytes, file);
  if (data.size() < header.bytes) {
    refuse_data(file, fmt::format("ends after {} of {} bytes of data", data.size(), header.bytes));
  }
  char more = 0;
  if (read_some(gz.get(), &more, 1, file) != 0) refuse_data(file, "has more data than its header says");
  // IDX is big-endian.
  const std::size_t width = c10::elementSize(header.type);
  for (std::size_t at = 0; width > 1 && at < data.size(); at += width) {
    std::reverse(data.data() + at, data.data() + at + width);
  }
  const at::Tensor tensor = at::empty(header.shape, at::TensorOptions(header.type));
  std::ranges::copy(data, static_cast<char*>(tensor.mutable_data_ptr()));
  return tensor;
}

namespace {

constexpr std::size_t kPixels = 3072;
constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;

// A record is the labels, the fine label last, and then the pixels.
struct Format {
  std::size_t label_bytes = 1;
  int classes = 10;
};

[[noreturn]] void refuse_binary(const std::filesystem::path& file, std::string what) {
  throw Error({.kind = ErrorKind::system,
               .what = std::move(what),
               .where = file.string(),
               .hint = "the binary version of the data set is needed"});
}

LabelledImages read_images(const std::vector<std::filesystem::path>& files, const Format& format) {
  const std::size_t record = format.label_bytes + kPixels;
  std::vector<std::string> parts;
  std::size_t count = 0;
  for (const auto& file : files) {
    parts.push_back(read_file(file, kMaxBytes));
    const std::size_t size = parts.back().size();
    if (size == 0 || size % record != 0)
      refuse_binary(file,
                    fmt::format("its {} bytes are not a whole number of images of {} bytes", size, record));
    count += size / record;
  }
  const auto rows = static_cast<std::int64_t>(count);
  LabelledImages all{.images = at::empty({rows, 3, 32, 32}, at::TensorOptions(at::kByte)),
                     .labels = at::empty({rows}, at::TensorOptions(at::kLong))};
  auto* pixels = all.images.mutable_data_ptr<std::uint8_t>();
  auto* label = all.labels.mutable_data_ptr<std::int64_t>();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t offset = 0; offset < parts[part].size(); offset += record, pixels += kPixels) {
      *label = static_cast<unsigned char>(parts[part][offset + format.label_bytes - 1]);
      if (*label >= format.classes)
        refuse_binary(files[part],
                      fmt::format("has label {}, but there are {} classes", *label, format.classes));
      ++label;
      std::memcpy(pixels, parts[part].data() + offset + format.label_bytes, kPixels);
    }
  }
  return all;
}

}  // namespace

LabelledImages read_cifar10(const std::filesystem::path& folder, bool train) {
  if (!train) return read_images({folder / "test_batch.bin"}, {});
  std::vector<std::filesystem::path> files;
  for (int i = 1; i <= 5; ++i) files.push_back(folder / fmt::format("data_batch_{}.bin", i));
  return read_images(files, {});
}

LabelledImages read_cifar100(const std::filesystem::path& folder, bool train) {
  return read_images({folder / (train ? "train.bin" : "test.bin")}, {.label_bytes = 2, .classes = 100});
}

}  // namespace acc
