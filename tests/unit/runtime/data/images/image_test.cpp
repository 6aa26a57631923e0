// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace image_test {

namespace {

const std::filesystem::path kImages = ACC_TEST_DATA "/runtime/images";

std::string failure_of(const std::string& bytes) {
  const auto file = acc::test::temporary_folder() / "image";
  acc::replace_file(file, bytes);
  try {
    acc::read_image(file);
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == file.string());
    CHECK(error.kind() == acc::ErrorKind::system);
    return error.problems().front().what;
  }
  return "none";
}

bool is_supported(const std::string& name) {
  return name.ends_with(".png") ? acc::detail::has_png() : acc::detail::has_jpeg();
}

}  // namespace

TEST_CASE("image: pixels are those that Pillow reads", "[runtime]") {
  const auto recorded = nlohmann::json::parse(acc::read_file(kImages / "images.json"));
  REQUIRE(recorded["files"].size() == 10);
  for (const auto& [name, expected] : recorded["files"].items()) {
    INFO(name);
    if (!is_supported(name)) continue;
    const at::Tensor image = acc::read_image(kImages / name);
    CHECK(image.sizes() == c10::IntArrayRef({3, expected["height"], expected["width"]}));
    const at::Tensor pixels = image.permute({1, 2, 0});
    REQUIRE(pixels.is_contiguous());
    CHECK(crc32(0, pixels.const_data_ptr<std::uint8_t>(), static_cast<unsigned>(pixels.numel())) ==
          expected["crc32"].get<std::uint32_t>());
  }
}

TEST_CASE("image: bytes that are not an image, or a broken one, are an error that names the file",
          "[runtime]") {
  CHECK(failure_of("") == "is empty");
  CHECK(failure_of("GIF89a") == "is neither a JPEG nor a PNG image");
  if (acc::detail::has_jpeg()) {
    const std::string jpeg = acc::read_file(kImages / "color.jpg");
    CHECK(failure_of(jpeg.substr(0, jpeg.size() / 2)).starts_with("is a broken JPEG image: "));
    CHECK(failure_of(jpeg.substr(0, 30)).starts_with("is a broken JPEG image: "));
    CHECK(failure_of(jpeg + "stray bytes") == "none");
  }
  if (acc::detail::has_png()) {
    std::string png = acc::read_file(kImages / "color.png");
    CHECK(failure_of(png.substr(0, png.size() / 2)).starts_with("is a broken PNG image: "));
    png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 0x10);
    CHECK(failure_of(png).starts_with("is a broken PNG image: "));
  }
}

TEST_CASE("image: without a format's library the error says how to get it", "[runtime]") {
  if (!acc::detail::has_jpeg())
    CHECK(failure_of("\xff\xd8\xff").find("without libjpeg-turbo") != std::string::npos);
  if (!acc::detail::has_png()) CHECK(failure_of("\x89PNG").find("without libpng") != std::string::npos);
  CHECK_THROWS_AS(acc::read_image(kImages / "missing.jpg"), acc::Error);
}

}  // namespace image_test
