// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "acc/runtime/tracking/event_file.hpp"

namespace acc::detail {

/// A PNG file of an image [H, W, C] of bytes on the CPU; 1, 3 or 4 channels.
std::string encode_png(const at::Tensor& image);

/// The event of SummaryWriter.add_images: [N, C, H, W] or [C, H, W], bytes or numbers from 0 to 1, as one
/// picture with eight in a row. Throws Error{usage} for other shapes.
std::string images_event(const EventTime& time, std::string_view tag, const at::Tensor& images);

/// The event of SummaryWriter.add_histogram with its default bins, which grow by a tenth. Throws Error{usage}
/// when there is no value, or one that is not finite.
std::string histogram_event(const EventTime& time, std::string_view tag, const at::Tensor& values);

}  // namespace acc::detail
