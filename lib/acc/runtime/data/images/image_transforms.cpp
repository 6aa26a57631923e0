// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_transforms.hpp"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "acc/base/error.hpp"

namespace acc {
namespace {

std::int64_t height_of(const at::Tensor& image) {
  return image.size(1);
}
std::int64_t width_of(const at::Tensor& image) {
  return image.size(2);
}

at::Tensor crop(const at::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                std::int64_t width) {
  return image.slice(1, top, top + height).slice(2, left, left + width);
}

// Channels-last memory makes LibTorch's kernel fast; LibTorch recognizes it only in four dimensions.
at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width) {
  if (height_of(image) == height && width_of(image) == width) return image;
  const at::Tensor pixels = image.unsqueeze(0).contiguous(at::MemoryFormat::ChannelsLast);
  return at::_upsample_bilinear2d_aa(pixels, {height, width}, /*align_corners=*/false).squeeze(0);
}

void require_room(const at::Tensor& image, std::int64_t size, const char* where) {
  if (height_of(image) >= size && width_of(image) >= size) return;
  throw Error({.what = fmt::format("an image of {} x {} is smaller than {} x {}", width_of(image),
                                   height_of(image), size, size),
               .where = where,
               .hint = "resize it first"});
}

void require_size(std::int64_t size, const char* where) {
  if (size < 1) throw Error({.what = fmt::format("a size of {} is not at least 1", size), .where = where});
}

void require_range(const std::array<double, 2>& range, double lowest, const char* name) {
  if (range[0] >= lowest && range[1] > 0 && range[1] >= range[0] && std::isfinite(range[1])) return;
  throw Error(
      {.what = fmt::format("its {} is from {} to {}, not between two numbers above 0, the lower first", name,
                           range[0], range[1]),
       .where = "random_resized_crop"});
}

struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// As torchvision's RandomResizedCrop.get_params: ten random attempts, then the largest central crop with an
// allowed ratio.
Box random_box(std::int64_t height, std::int64_t width, const RandomResizedCropOptions& options,
               SampleRandom& random) {
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(options.scale[0], options.scale[1]);
    const double ratio = std::exp(random.uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target * ratio)));
    const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target / ratio)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const std::int64_t top = random.below(height - h + 1);
    return {.top = top, .left = random.below(width - w + 1), .height = h, .width = w};
  }
  const double ratio = std::clamp(static_cast<double>(width) / static_cast<double>(height), options.ratio[0],
                                  options.ratio[1]);
  const auto w =
      std::min(width, static_cast<std::int64_t>(std::nearbyint(static_cast<double>(height) * ratio)));
  const auto h = std::min(height, static_cast<std::int64_t>(std::nearbyint(static_cast<double>(w) / ratio)));
  return {.top = (height - h) / 2, .left = (width - w) / 2, .height = h, .width = w};
}

void require_one_size(c10::ArrayRef<at::Tensor> images) {
  if (images.empty()) throw Error({.what = "no images", .where = "stack_images"});
  if (images[0].dim() != 3 || images[0].size(0) != 3) {
    throw Error(
        {.what = fmt::format("an image is [{}], not [3, height, width]", fmt::join(images[0].sizes(), ", ")),
         .where = "stack_images",
         .hint = "expand({3, -1, -1}) makes three channels of one"});
  }
  for (const at::Tensor& image : images) {
    if (image.sizes() == images[0].sizes()) continue;
    throw Error(
        {.what = fmt::format("images of one batch have different sizes: {} x {} and {} x {}",
                             width_of(images[0]), height_of(images[0]), width_of(image), height_of(image)),
         .hint = "give the data set a transform that resizes or crops"});
  }
}

// Copies channels-last pixels to contiguous channels, and maps the values of each channel through `table`.
template <class Number, class Table>
at::Tensor stack_planes(c10::ArrayRef<at::Tensor> images, at::ScalarType type, Table table) {
  require_one_size(images);
  const std::int64_t pixels = height_of(images[0]) * width_of(images[0]);
  at::Tensor batch =
      at::empty({static_cast<std::int64_t>(images.size()), 3, height_of(images[0]), width_of(images[0])},
                at::TensorOptions(type));
  auto* to = batch.mutable_data_ptr<Number>();
  for (const at::Tensor& image : images) {
    const at::Tensor rows = image.permute({1, 2, 0}).contiguous();
    const auto* from = rows.const_data_ptr<std::uint8_t>();
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t color = 0; color < 3; ++color)
        to[color * pixels + pixel] = table(color, from[3 * pixel + color]);
    }
    to += 3 * pixels;
  }
  return batch;
}

}  // namespace

namespace detail {

void require_finite(const Normalize& normalize) {
  for (std::size_t color = 0; color < 3; ++color) {
    const float mean = normalize.mean[color];
    const float std = normalize.std[color];
    if (std::isfinite(mean) && std::isfinite(std) && std != 0) continue;
    throw Error({.what = fmt::format("a mean of {} and a std of {} give no numbers", mean, std),
                 .where = "Normalize"});
  }
}

}  // namespace detail

ImageTransform resize(std::int64_t size) {
  require_size(size, "resize");
  return [=](const at::Tensor& image, SampleRandom& /*random*/) {
    const std::int64_t height = height_of(image);
    const std::int64_t width = width_of(image);
    return height < width ? resized(image, size, size * width / height)
                          : resized(image, size * height / width, size);
  };
}

ImageTransform resize(std::int64_t height, std::int64_t width) {
  require_size(std::min(height, width), "resize");
  return [=](const at::Tensor& image, SampleRandom& /*random*/) { return resized(image, height, width); };
}

ImageTransform center_crop(std::int64_t size) {
  require_size(size, "center_crop");
  return [=](const at::Tensor& image, SampleRandom& /*random*/) {
    require_room(image, size, "center_crop");
    const auto middle = [&](std::int64_t length) {
      return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(length - size) / 2));
    };
    return crop(image, middle(height_of(image)), middle(width_of(image)), size, size);
  };
}

ImageTransform random_crop(std::int64_t size, std::int64_t padding) {
  require_size(size, "random_crop");
  if (padding < 0)
    throw Error({.what = fmt::format("a padding of {} is negative", padding), .where = "random_crop"});
  return [=](const at::Tensor& image, SampleRandom& random) {
    const at::Tensor padded =
        padding == 0 ? image : at::constant_pad_nd(image, {padding, padding, padding, padding});
    require_room(padded, size, "random_crop");
    const std::int64_t top = random.below(height_of(padded) - size + 1);
    return crop(padded, top, random.below(width_of(padded) - size + 1), size, size);
  };
}

ImageTransform random_resized_crop(std::int64_t size, const RandomResizedCropOptions& options) {
  require_size(size, "random_resized_crop");
  require_range(options.scale, 0, "scale");
  require_range(options.ratio, std::numeric_limits<double>::min(), "ratio");
  return [=](const at::Tensor& image, SampleRandom& random) {
    const Box box = random_box(height_of(image), width_of(image), options, random);
    return resized(crop(image, box.top, box.left, box.height, box.width), size, size);
  };
}

ImageTransform random_horizontal_flip(double probability) {
  return [=](const at::Tensor& image, SampleRandom& random) {
    return random.chance(probability) ? image.flip({2}) : image;
  };
}

at::Tensor stack_images(c10::ArrayRef<at::Tensor> images) {
  return stack_planes<std::uint8_t>(images, at::kByte,
                                    [](std::int64_t /*color*/, std::uint8_t value) { return value; });
}

at::Tensor stack_images(c10::ArrayRef<at::Tensor> images, const Normalize& normalize) {
  detail::require_finite(normalize);
  std::array<std::array<float, 256>, 3> table{};
  for (std::size_t color = 0; color < 3; ++color) {
    for (std::size_t value = 0; value < 256; ++value) {
      table[color][value] =
          (static_cast<float>(value) / 255.0F - normalize.mean[color]) / normalize.std[color];
    }
  }
  return stack_planes<float>(images, at::kFloat, [&](std::int64_t color, std::uint8_t value) {
    return table[static_cast<std::size_t>(color)][value];
  });
}

}  // namespace acc
