// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace acc {

/// How decode_image decodes.
struct DecodeOptions {
  /// If above 0, a JPEG image is decoded at 1/2, 1/4 or 1/8 of its size as long as its shorter side does not
  /// fall below this, as Pillow's draft(). This is several times faster; the pixels differ slightly from
  /// those of decoding in full and resizing.
  std::int64_t draft_size = 0;
};

/// Decodes a JPEG or PNG image: RGB, [3, height, width], uint8, in channels-last memory. The same pixels as
/// Pillow's convert("RGB"); EXIF rotation is ignored. Throws Error{system} for bytes that are not an image, a
/// broken one, one of more than 178,956,970 pixels, which Pillow refuses too, and where acc was built without
/// the format.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options = {});

/// The same for a file, whose name is in every Error.
at::Tensor read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

namespace detail {

/// Whether acc was built with the library for the format.
bool has_jpeg();
bool has_png();

/// Throws Error{system} without `where` for more pixels than decode_image reads.
void require_readable_size(std::int64_t width, std::int64_t height);

/// RGB, [height, width, 3], uint8. `draft_size` is that of DecodeOptions. Throws Error{system} without
/// `where` for a broken image.
at::Tensor decode_jpeg(std::string_view bytes, std::int64_t draft_size);
at::Tensor decode_png(std::string_view bytes);

}  // namespace detail

}  // namespace acc
