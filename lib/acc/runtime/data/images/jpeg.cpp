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

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Header read_header(tjhandle decoder, std::string_view bytes) {
  Header header;
  int subsampling = 0;
  if (tjDecompressHeader3(decoder, data_of(bytes), bytes.size(), &header.width, &header.height, &subsampling,
                          &header.colors) != 0) {
    throw_jpeg_error(decoder);
  }
  return header;
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
  thread_local const Decoder decoder(tjInitDecompress());
  Header header = read_header(decoder.get(), bytes);
  shrink(header, draft_size);
  const bool cmyk = header.colors == TJCS_CMYK || header.colors == TJCS_YCCK;
  at::Tensor image = at::empty({header.height, header.width, cmyk ? 4 : 3}, at::TensorOptions(at::kByte));
  const int failed =
      tjDecompress2(decoder.get(), data_of(bytes), bytes.size(), image.mutable_data_ptr<std::uint8_t>(),
                    header.width, 0, header.height, cmyk ? TJPF_CMYK : TJPF_RGB, 0);
  // Most warnings are harmless, such as extraneous bytes. Only this one reports that the rest of the image is
  // missing.
  if (failed != 0) {
    const bool warning = tjGetErrorCode(decoder.get()) == TJERR_WARNING;
    if (!warning || std::string_view(tjGetErrorStr2(decoder.get())).starts_with("Premature end of JPEG file"))
      throw_jpeg_error(decoder.get());
  }
  return cmyk ? rgb_of_cmyk(image) : image;
}

}  // namespace acc::detail
