// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace acc {

struct DecodeOptions {
  /// Above 0: a JPEG image whose shorter side is at least twice, four or eight times as long is read at 1/2,
  /// 1/4 or 1/8 of its size. Several times faster, with slightly other pixels than reading it in full and
  /// resizing it.
  std::int64_t draft_size = 0;
};

/// Decodes a JPEG or PNG image: RGB, [3, height, width], uint8, in channels-last memory. The same pixels as
/// Pillow's convert("RGB"); EXIF rotation is ignored. Throws Error{system} for bytes that are not an image or
/// a broken one, and where acc was built without the format.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options = {});

/// The same from a file, which an Error names.
at::Tensor read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

namespace detail {

/// Whether acc was built with the library for the format.
bool has_jpeg();
bool has_png();

/// RGB, [height, width, 3], uint8. With a `draft_size` above 0, at 1/2, 1/4 or 1/8 of its size as long as its
/// shorter side is not below that. Throws Error{system} without a place for a broken image.
at::Tensor decode_jpeg(std::string_view bytes, std::int64_t draft_size);
at::Tensor decode_png(std::string_view bytes);

}  // namespace detail

}  // namespace acc
