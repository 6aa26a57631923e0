// SPDX-License-Identifier: Apache-2.0
// What the sources with and without libjpeg-turbo and libpng have in common; the build picks one of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace acc {

bool has_jpeg();
bool has_png();

/// RGB, [height, width, 3], uint8. With a `draft_size` above 0, at 1/2, 1/4 or 1/8 of its size as long as its
/// shorter side is not below that. Throws Error{system} without a place for a broken image.
at::Tensor decode_jpeg(std::string_view bytes, std::int64_t draft_size);
at::Tensor decode_png(std::string_view bytes);

}  // namespace acc
