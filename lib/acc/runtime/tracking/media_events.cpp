// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/media_events.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/zeros.h>
#include <zlib.h>

#include <algorithm>
#include <ranges>
#include <vector>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

constexpr std::int64_t kImagesInRow = 8;

void append_big_endian(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xffU);
}

// A PNG chunk: the length of the content, its type, the content, and the CRC-32 of type and content.
void append_chunk(std::string& png, std::string_view kind, std::string_view content) {
  append_big_endian(png, static_cast<std::uint32_t>(content.size()));
  const std::string covered = std::string(kind).append(content);
  png += covered;
  append_big_endian(png, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(covered.data()),
                                                            static_cast<uInt>(covered.size()))));
}

std::string deflated(const std::string& bytes) {
  uLongf size = ::compressBound(bytes.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
             bytes.size());
  packed.resize(size);
  return packed;
}

// Arranges images [N, C, H, W] in a grid: one image [H, W, C] of bytes. Grayscale images become RGB, as in
// TensorBoard's grid.
at::Tensor grid_of(const at::Tensor& given) {
  at::Tensor images = given.detach().cpu();
  if (images.scalar_type() != at::kByte) images = images.to(at::kFloat).mul(255).clamp(0, 255).to(at::kByte);
  if (images.size(1) == 1) images = at::cat({images, images, images}, 1);
  const std::int64_t count = images.size(0);
  const std::int64_t columns = std::min(count, kImagesInRow);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  at::Tensor grid = at::zeros({images.size(1), rows * height, columns * width}, images.options());
  for (std::int64_t i = 0; i < count; ++i) {
    grid.slice(1, i / columns * height, (i / columns + 1) * height)
        .slice(2, i % columns * width, (i % columns + 1) * width)
        .copy_(images[i]);
  }
  return grid.permute({1, 2, 0}).contiguous();
}

// The bins of SummaryWriter for bins="tensorflow".
const std::vector<double>& default_bins() {
  static const std::vector<double> bins = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    std::vector<double> result;
    for (const double limit : std::views::reverse(positive)) result.push_back(-limit);
    result.push_back(0);
    result.insert(result.end(), positive.begin(), positive.end());
    return result;
  }();
  return bins;
}

std::string packed(const std::vector<double>& numbers) {
  std::string bytes;
  for (const double number : numbers) append_little_endian(bytes, std::bit_cast<std::uint64_t>(number), 8);
  return bytes;
}

}  // namespace

std::string encode_png(const at::Tensor& image) {
  const std::int64_t height = image.size(0);
  const std::int64_t row = image.size(1) * image.size(2);
  const at::Tensor bytes = image.contiguous();
  const auto* pixels = reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>());
  std::string lines;
  for (std::int64_t y = 0; y < height; ++y) {
    lines += '\0';  // filter type: none
    lines.append(pixels + y * row, static_cast<std::size_t>(row));
  }
  constexpr char kGray = 0;
  constexpr char kRgb = 2;
  constexpr char kRgba = 6;
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(image.size(1)));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  header += '\x08';  // bits per channel
  header += image.size(2) == 1 ? kGray : image.size(2) == 3 ? kRgb : kRgba;
  header.append(3, '\0');
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", deflated(lines));
  append_chunk(png, "IEND", "");
  return png;
}

std::string images_event(const EventTime& time, std::string_view tag, const at::Tensor& images) {
  const at::Tensor batch = images.dim() == 3 ? images.unsqueeze(0) : images;
  const bool fits = batch.dim() == 4 && batch.numel() > 0 &&
                    (batch.size(1) == 1 || batch.size(1) == 3 || batch.size(1) == 4);
  if (!fits)
    throw Error({.what = "is not a batch of images: its shape must be [N, C, H, W] with 1, 3 or 4 channels",
                 .where = std::string(tag)});
  const at::Tensor grid = grid_of(batch);
  return summary_event(time, Protobuf().bytes(1, tag).message(4, Protobuf()
                                                                     .number(1, grid.size(0))
                                                                     .number(2, grid.size(1))
                                                                     .number(3, grid.size(2))
                                                                     .bytes(4, encode_png(grid))));
}

std::optional<std::string> histogram_event(const EventTime& time, std::string_view tag,
                                           const at::Tensor& values) {
  at::Tensor flat = values.detach().cpu().to(at::kDouble).flatten().contiguous().resolve_neg();
  flat = flat.masked_select(at::isfinite(flat));
  const std::vector<double>& bins = default_bins();
  std::vector<double> counts(bins.size() - 1, 0);
  const double* begin = flat.data_ptr<double>();
  double sum_of_squares = 0;
  for (const double* value = begin; value != begin + flat.numel(); ++value) {
    sum_of_squares += *value * *value;
    // Values outside of all bins are left out, as in numpy.histogram.
    if (*value < bins.front() || *value > bins.back()) continue;
    const auto after = std::ranges::upper_bound(bins, *value) - bins.begin();
    counts[static_cast<std::size_t>(std::min<std::ptrdiff_t>(after - 1, std::ssize(counts) - 1))] += 1;
  }
  // Keeps the bins from the one before the first that is not empty to the last that is not empty.
  const auto is_filled = [](double count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, is_filled) - counts.begin();
  const auto last = counts.rend() - std::ranges::find_if(std::views::reverse(counts), is_filled);
  if (last == 0) return std::nullopt;
  std::vector<double> filled_counts = {0};
  filled_counts.insert(filled_counts.end(), counts.begin() + first, counts.begin() + last);
  const std::vector<double> limits(bins.begin() + first, bins.begin() + last + 1);
  const Protobuf histogram = Protobuf()
                                 .number(1, flat.min().item<double>())
                                 .number(2, flat.max().item<double>())
                                 .number(3, static_cast<double>(flat.numel()))
                                 .number(4, flat.sum().item<double>())
                                 .number(5, sum_of_squares)
                                 .bytes(6, packed(limits))
                                 .bytes(7, packed(filled_counts));
  return summary_event(time, Protobuf().bytes(1, tag).message(5, histogram));
}

}  // namespace acc::detail
