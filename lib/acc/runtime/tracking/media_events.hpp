// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>

#include "acc/runtime/tracking/event_file.hpp"

namespace acc::detail {

/// Encodes an image, bytes [H, W, C] on the CPU with 1, 3 or 4 channels, as PNG.
std::string encode_png(const at::Tensor& image);

/// The event of SummaryWriter.add_images: images [N, C, H, W] or [C, H, W] of bytes or numbers from 0 to 1,
/// as one picture with eight images in a row. Throws Error{usage} for other shapes.
std::string images_event(const EventTime& time, std::string_view tag, const at::Tensor& images);

/// The event of SummaryWriter.add_histogram with its default bins, each a tenth wider than the one before, of
/// the finite values: gradients that overflow must not end a training. Nothing when no value is in a bin; the
/// outermost end at 1e20.
std::optional<std::string> histogram_event(const EventTime& time, std::string_view tag,
                                           const at::Tensor& values);

}  // namespace acc::detail
