// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/data/images/image.hpp"

namespace acc::detail {
namespace {

struct Destroy {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};
using Decoder = std::unique_ptr<void, Destroy>;

struct Header {
  int width = 0;
  int height = 0;
  int colors = 0;
};

[[noreturn]] void throw_jpeg_error(tjhandle decoder) {
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("is a broken JPEG image: {}", tjGetErrorStr2(decoder))});
}

// Pillow reads an image in spite of these. TJERR_WARNING is also the code of an error after a warning, and
// the text is then that of the error.
bool is_warning(tjhandle decoder) {
  const std::string_view text = tjGetErrorStr2(decoder);
  return tjGetErrorCode(decoder) == TJERR_WARNING &&
         (text.starts_with("Corrupt JPEG data: ") || text.starts_with("Warning: ") ||
          text.starts_with("Unknown Adobe color transform code ") ||
          text.starts_with("Inconsistent progression sequence ") ||
          text.starts_with("Invalid SOS parameters for sequential JPEG"));
}

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Header read_header(tjhandle decoder, std::string_view bytes) {
  Header header;
  int subsampling = 0;
  if (tjDecompressHeader3(decoder, data_of(bytes), bytes.size(), &header.width, &header.height, &subsampling,
                          &header.colors) != 0 &&
      !is_warning(decoder)) {
    throw_jpeg_error(decoder);
  }
  require_readable_size(header.width, header.height);
  return header;
}

// Whether the end-of-image marker follows, where libjpeg looks for it: between segments, and in the data of
// scans, in which 0xff is followed by 0x00 or a restart marker.
bool is_whole(std::string_view bytes) {
  constexpr char kEndOfImage = '\xd9';
  constexpr char kProgressive = '\xc2';
  constexpr char kStartOfScan = '\xda';
  bool is_progressive = false;
  const auto has_no_length = [](char marker) {
    return marker == '\x01' || (marker >= '\xd0' && marker <= '\xd8');
  };
  for (std::size_t at = bytes.find('\xff', 2); at != bytes.npos; at = bytes.find('\xff', at)) {
    if (++at == bytes.size()) return false;
    const char marker = bytes[at];
    if (marker == kEndOfImage) return true;
    if (marker == '\xff' || marker == '\0' || has_no_length(marker)) continue;
    if (marker == kProgressive) is_progressive = true;
    // Damaged data may have what looks like a segment: where scans are not progressive, only the end is
    // looked for.
    if (marker == kStartOfScan && !is_progressive) return bytes.find("\xff\xd9", at) != bytes.npos;
    if (at + 2 >= bytes.size()) return false;
    const auto byte = [&](std::size_t index) {
      return std::size_t{static_cast<unsigned char>(bytes[index])};
    };
    at += 1 + std::max<std::size_t>(2, byte(at + 1) << 8 | byte(at + 2));
  }
  return false;
}

void shrink(Header& header, std::int64_t draft_size) {
  const std::int64_t shorter = std::min(header.width, header.height);
  for (const int divisor : {8, 4, 2}) {
    const tjscalingfactor factor{1, divisor};
    if (draft_size <= 0 || TJSCALED(shorter, factor) < draft_size) continue;
    header.width = TJSCALED(header.width, factor);
    header.height = TJSCALED(header.height, factor);
    return;
  }
}

// CMYK values are stored inverted, as Adobe's programs write and Pillow reads them.
at::Tensor rgb_of_cmyk(const at::Tensor& cmyk) {
  at::Tensor rgb = at::empty({cmyk.size(0), cmyk.size(1), 3}, at::TensorOptions(at::kByte));
  const auto* from = cmyk.const_data_ptr<std::uint8_t>();
  auto* to = rgb.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t pixel = 0; pixel < cmyk.size(0) * cmyk.size(1); ++pixel, from += 4, to += 3) {
    for (int color = 0; color < 3; ++color) {
      // Rounds the product of two bytes as Pillow does.
      const unsigned ink = (255U - from[color]) * from[3] + 128U;
      to[color] = static_cast<std::uint8_t>(from[3] - ((ink + (ink >> 8U)) >> 8U));
    }
  }
  return rgb;
}

}  // namespace

at::Tensor decode_jpeg(std::string_view bytes, std::int64_t draft_size) {
  // A decoder keeps the tables of an image for the next one, which may lack its own.
  const Decoder decoder(tjInitDecompress());
  Header header = read_header(decoder.get(), bytes);
  shrink(header, draft_size);
  const bool cmyk = header.colors == TJCS_CMYK || header.colors == TJCS_YCCK;
  at::Tensor image = at::empty({header.height, header.width, cmyk ? 4 : 3}, at::TensorOptions(at::kByte));
  const int failed =
      tjDecompress2(decoder.get(), data_of(bytes), bytes.size(), image.mutable_data_ptr<std::uint8_t>(),
                    header.width, 0, header.height, cmyk ? TJPF_CMYK : TJPF_RGB, 0);
  if (failed != 0) {
    if (!is_warning(decoder.get())) throw_jpeg_error(decoder.get());
    // Only the first warning is reported: it may hide that the rest of the image is missing.
    if (!is_whole(bytes))
      throw Error({.kind = ErrorKind::system, .what = "is a broken JPEG image: its end is missing"});
  }
  return cmyk ? rgb_of_cmyk(image) : image;
}

}  // namespace acc::detail
