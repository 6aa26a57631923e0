// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_transforms.hpp"

#include <ATen/ops/arange.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"

namespace image_transforms_test {

namespace {

const std::filesystem::path kImages = ACC_TEST_DATA "/runtime/images";

// Row i of a height x width image holds 10 * i + column in each colour.
at::Tensor numbered(std::int64_t height, std::int64_t width) {
  const at::Tensor rows = at::arange(height, at::kByte).mul(10).unsqueeze(1);
  return rows.add(at::arange(width, at::kByte))
      .unsqueeze(2)
      .expand({height, width, 3})
      .contiguous()
      .permute({2, 0, 1});
}

at::Tensor transformed(const acc::ImageTransform& transform, const at::Tensor& image,
                       std::size_t sample = 0) {
  acc::SampleRandom random(sample);
  return transform(image, random);
}

std::uint32_t crc_of(const at::Tensor& contiguous) {
  return static_cast<std::uint32_t>(crc32(0, static_cast<const unsigned char*>(contiguous.const_data_ptr()),
                                          static_cast<unsigned>(contiguous.nbytes())));
}

// The CRC of an image, pixel by pixel.
std::uint32_t crc_of_image(const at::Tensor& image) {
  return crc_of(image.permute({1, 2, 0}).contiguous());
}

}  // namespace

TEST_CASE("image_transforms: resizing and normalising equal torch's, bit for bit", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const auto expected = nlohmann::json::parse(acc::read_file(kImages / "images.json"))["results"];
  const at::Tensor image = acc::read_image(kImages / "color.png");
  CHECK(crc_of_image(transformed(acc::resize(20, 30), image)) ==
        expected["resize_20_30"].get<std::uint32_t>());
  CHECK(crc_of_image(transformed(acc::resize(20), image)) ==
        expected["resize_short_20"].get<std::uint32_t>());
  CHECK(crc_of_image(transformed(acc::resize(100), image)) == expected["resize_up_100"].get<std::uint32_t>());
  CHECK(crc_of_image(transformed(acc::resize(16, 16), image.slice(1, 5, 35).slice(2, 7, 50))) ==
        expected["cropped_resize"].get<std::uint32_t>());
  CHECK(crc_of(acc::stack_images(image, acc::Normalize())) == expected["normalize"].get<std::uint32_t>());
}

TEST_CASE("image_transforms: resize sets the length of the shorter side", "[runtime]") {
  CHECK(transformed(acc::resize(4), numbered(8, 20)).sizes() == c10::IntArrayRef({3, 4, 10}));
  CHECK(transformed(acc::resize(4), numbered(20, 8)).sizes() == c10::IntArrayRef({3, 10, 4}));
}

TEST_CASE("image_transforms: center_crop takes the middle", "[runtime]") {
  const at::Tensor image = numbered(6, 8);
  CHECK(transformed(acc::center_crop(4), image).equal(image.slice(1, 1, 5).slice(2, 2, 6)));
  CHECK_THROWS_AS(transformed(acc::center_crop(7), image), acc::Error);
}

TEST_CASE("image_transforms: random crops are different parts of the image for each sample", "[runtime]") {
  const at::Tensor image = numbered(8, 9);
  std::set<int> corners;
  for (std::size_t sample = 0; sample < 200; ++sample) {
    const at::Tensor part = transformed(acc::random_crop(5), image, sample);
    const int corner = part[0][0][0].item<int>();
    corners.insert(corner);
    CHECK(part.equal(image.slice(1, corner / 10, corner / 10 + 5).slice(2, corner % 10, corner % 10 + 5)));
    CHECK(transformed(acc::random_crop(5), image, sample).equal(part));
  }
  CHECK(corners.size() == 20);
  CHECK(transformed(acc::random_crop(12, 2), image).sizes() == c10::IntArrayRef({3, 12, 12}));
}

TEST_CASE("image_transforms: random_resized_crop takes parts within its bounds", "[runtime]") {
  const at::Tensor image = numbered(20, 24);
  CHECK(transformed(acc::random_resized_crop(7), image).sizes() == c10::IntArrayRef({3, 7, 7}));
  // With a scale of 1 the crop is the whole image; it is square, so that no pixel changes.
  const at::Tensor square = numbered(20, 20);
  const auto all = acc::random_resized_crop(20, {.scale = {1, 1}, .ratio = {1, 1}});
  CHECK(transformed(all, square, 3).equal(square));
  // No crop fits: the largest central one with that ratio is used.
  const auto wide = acc::random_resized_crop(4, {.scale = {1, 1}, .ratio = {6, 6}});
  CHECK(transformed(wide, image).equal(transformed(acc::resize(4, 4), image.slice(1, 8, 12))));
}

TEST_CASE("image_transforms: a random flip flips about half of the images", "[runtime]") {
  const at::Tensor image = numbered(3, 4);
  int flipped = 0;
  for (std::size_t sample = 0; sample < 400; ++sample) {
    const at::Tensor result = transformed(acc::random_horizontal_flip(), image, sample);
    if (result.equal(image.flip({2}))) ++flipped;
  }
  CHECK(std::abs(flipped - 200) < 50);
}

TEST_CASE("image_transforms: arguments without an image as result are errors at once", "[runtime]") {
  using acc::test::error_of;
  for (const std::int64_t size : {0, -1}) {
    const std::string error = ": a size of " + std::to_string(size) + " is not at least 1";
    CHECK(error_of([&] { acc::resize(size); }) == "resize" + error);
    CHECK(error_of([&] { acc::resize(3, size); }) == "resize" + error);
    CHECK(error_of([&] { acc::center_crop(size); }) == "center_crop" + error);
    CHECK(error_of([&] { acc::random_crop(size); }) == "random_crop" + error);
    CHECK(error_of([&] { acc::random_resized_crop(size); }) == "random_resized_crop" + error);
  }
  CHECK(error_of([] { acc::random_crop(2, -1); }) == "random_crop: a padding of -1 is negative");
  CHECK(error_of([] { acc::random_resized_crop(4, {.ratio = {4, 0.5}}); }) ==
        "random_resized_crop: its ratio is from 4 to 0.5, not between two numbers above 0, the lower first");
  CHECK_THROWS_AS(acc::random_resized_crop(4, {.scale = {-1, 1}}), acc::Error);
  CHECK(error_of([] { acc::stack_images({numbered(2, 3)}, {.std = {1, 0, 1}}); }) ==
        "Normalize: a mean of 0.456 and a std of 0 give no numbers");
}

TEST_CASE("image_transforms: stacked images have contiguous channels, and must have one size", "[runtime]") {
  const at::Tensor batch = acc::stack_images({numbered(2, 3), numbered(2, 3)});
  CHECK(batch.is_contiguous());
  CHECK(batch[1].equal(numbered(2, 3)));
  CHECK_THROWS_AS(acc::stack_images({numbered(2, 3), numbered(3, 2)}), acc::Error);
  CHECK_THROWS_WITH(acc::stack_images({numbered(2, 3).slice(0, 0, 1)}),
                    "stack_images: an image is [1, 2, 3], not [3, height, width] (expand({3, -1, -1}) makes "
                    "three channels of one)");
}

}  // namespace image_transforms_test
