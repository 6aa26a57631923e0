// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "acc/runtime/tracking/event_file.hpp"

namespace acc::detail {

/// Encodes an image, bytes [H, W, C] on the CPU with 1, 3 or 4 channels, as PNG.
std::string encode_png(const at::Tensor& image);

/// The event of SummaryWriter.add_images: images [N, C, H, W] or [C, H, W] of bytes or numbers from 0 to 1,
/// as one picture with eight images in a row. Throws Error{usage} for other shapes.
std::string images_event(const EventTime& time, std::string_view tag, const at::Tensor& images);

/// The event of SummaryWriter.add_histogram with its default bins, each a tenth wider than the one before.
/// Throws Error{usage} when there is no value, or one that is not finite.
std::string histogram_event(const EventTime& time, std::string_view tag, const at::Tensor& values);

}  // namespace acc::detail
