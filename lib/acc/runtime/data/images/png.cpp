// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/data/images/image.hpp"

namespace acc::detail {
namespace {

// libpng reports errors by longjmp, which skips destructors: this struct is owned by the function above the
// one that calls setjmp.
struct Reading {
  std::string_view bytes = {};
  std::size_t next = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  at::Tensor image = {};
  std::vector<png_bytep> rows = {};
  std::string failure = {};

  explicit Reading(std::string_view of) : bytes(of) {}
  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
};

void on_error(png_structp png, png_const_charp text) {
  static_cast<Reading*>(png_get_error_ptr(png))->failure = text;
  png_longjmp(png, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}

void give_bytes(png_structp png, png_bytep to, std::size_t size) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (reading->bytes.size() - reading->next < size) png_error(png, "the file ends too early");
  std::memcpy(to, reading->bytes.data() + reading->next, size);
  reading->next += size;
}

// Pillow does not scale these to 8 bits, but limits each value to 255.
bool is_wide_gray(const Reading& reading) {
  return png_get_bit_depth(reading.png, reading.info) == 16 &&
         png_get_color_type(reading.png, reading.info) == PNG_COLOR_TYPE_GRAY;
}

// Converts every format to 8-bit RGB and drops transparency, as Pillow's convert("RGB").
void request_rgb(Reading& reading) {
  png_set_palette_to_rgb(reading.png);
  png_set_expand_gray_1_2_4_to_8(reading.png);
  png_set_strip_alpha(reading.png);
  if (!is_wide_gray(reading)) {
    png_set_strip_16(reading.png);
    png_set_gray_to_rgb(reading.png);
  }
  png_set_interlace_handling(reading.png);
  png_read_update_info(reading.png, reading.info);
}

void allocate_image(Reading& reading) {
  const auto height = static_cast<std::int64_t>(png_get_image_height(reading.png, reading.info));
  const auto width = static_cast<std::int64_t>(png_get_image_width(reading.png, reading.info));
  require_readable_size(width, height);
  const std::int64_t bytes = is_wide_gray(reading) ? 2 : 3;
  reading.image = at::empty({height, width, bytes}, at::TensorOptions(at::kByte));
  for (std::int64_t row = 0; row < height; ++row)
    reading.rows.push_back(reading.image.mutable_data_ptr<std::uint8_t>() + row * width * bytes);
}

// Of the two bytes of each value, the higher first.
at::Tensor limited_to_255(const at::Tensor& values) {
  return values.select(2, 1).masked_fill(values.select(2, 0).gt(0), 255).unsqueeze(2).repeat({1, 1, 3});
}

bool read(Reading& reading) {
  if (setjmp(png_jmpbuf(reading.png)) != 0) return false;
  png_set_read_fn(reading.png, &reading, give_bytes);
  png_read_info(reading.png, reading.info);
  request_rgb(reading);
  allocate_image(reading);
  png_read_image(reading.png, reading.rows.data());
  png_read_end(reading.png, nullptr);
  return true;
}

}  // namespace

at::Tensor decode_png(std::string_view bytes) {
  Reading reading(bytes);
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, on_error, on_warning);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr)
    throw Error({.kind = ErrorKind::system, .what = "libpng cannot be used: another version is installed"});
  if (!read(reading)) {
    throw Error(
        {.kind = ErrorKind::system, .what = fmt::format("is a broken PNG image: {}", reading.failure)});
  }
  return is_wide_gray(reading) ? limited_to_255(reading.image) : reading.image;
}

}  // namespace acc::detail
