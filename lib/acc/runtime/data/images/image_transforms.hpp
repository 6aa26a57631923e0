// SPDX-License-Identifier: Apache-2.0
// Transforms with the names and results of torchvision's, for uint8 images [3, height, width].
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>

#include "acc/runtime/data/sample.hpp"

namespace acc {

/// Transforms an image. The numbers of `random` depend only on the sample and the pass.
using ImageTransform = std::function<at::Tensor(const at::Tensor& image, SampleRandom& random)>;

// Each throws Error{usage} for a size below 1, a negative padding, and bounds that are not in order.

/// Resizes with antialiased bilinear interpolation: the shorter side to `size`, or to both sizes.
ImageTransform resize(std::int64_t size);
ImageTransform resize(std::int64_t height, std::int64_t width);

/// Crops the central `size` x `size`. Throws Error{usage} for a smaller image.
ImageTransform center_crop(std::int64_t size);

/// Crops `size` x `size` at a random position of the image with `padding` black pixels on each side.
ImageTransform random_crop(std::int64_t size, std::int64_t padding = 0);

/// What random_resized_crop may cut out.
struct RandomResizedCropOptions {
  /// The range of the cropped fraction of the area.
  std::array<double, 2> scale = {0.08, 1};
  /// The range of its width / height.
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};
};

/// Crops a random part of the image and resizes it to `size` x `size`.
ImageTransform random_resized_crop(std::int64_t size, const RandomResizedCropOptions& options = {});

/// Flips left and right with this probability.
ImageTransform random_horizontal_flip(double probability = 0.5);

/// Normalises each channel: (value / 255 - mean) / std. The defaults are those of ImageNet.
struct Normalize {
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F};  ///< Of red, green and blue, in [0, 1].
  std::array<float, 3> std = {0.229F, 0.224F, 0.225F};
};

namespace detail {

/// Throws Error{usage} for a std of 0, and for what is not finite.
void require_finite(const Normalize& normalize);

}  // namespace detail

/// Stacks images of the same size to uint8 [n, 3, height, width]. Throws Error{usage} for different sizes,
/// and for images that do not have three channels.
at::Tensor stack_images(c10::ArrayRef<at::Tensor> images);

/// The same as float32, normalised: equal to torchvision's ToTensor and Normalize. Throws Error{usage} also
/// for a std of 0.
at::Tensor stack_images(c10::ArrayRef<at::Tensor> images, const Normalize& normalize);

}  // namespace acc
