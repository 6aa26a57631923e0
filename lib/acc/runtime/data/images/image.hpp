// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace acc {

struct DecodeOptions {
  /// Above 0: a JPEG image whose shorter side is at least twice, four or eight times as long is read at 1/2,
  /// 1/4 or 1/8 of its size. Several times quicker, not equal to reading it whole and shrinking it.
  std::int64_t draft_size = 0;
};

/// A JPEG or PNG image, whichever the bytes are: RGB, [3, height, width], uint8, with the colours of a pixel
/// side by side in memory. The same pixels as Pillow's convert("RGB"); rotation marks are not followed.
/// Throws Error{system} for bytes that are no image or a broken one, and where acc was built without the
/// format.
at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options = {});

/// The same from a file, which an Error names.
at::Tensor read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

}  // namespace acc
