// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image.hpp"

#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"
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
  REQUIRE(recorded["files"].size() == 9);
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

TEST_CASE("image: gray values of 16 bits are limited to 255, as Pillow's", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  // 200, 255, 256 and 65535 in a row.
  const acc::test::TemporaryFolder folder;
  const auto text = [](std::initializer_list<int> bytes) { return std::string(bytes.begin(), bytes.end()); };
  const auto number = [&](std::size_t value) {
    return text(
        {int(value >> 24U & 255U), int(value >> 16U & 255U), int(value >> 8U & 255U), int(value & 255U)});
  };
  const auto chunk = [&](const std::string& name, const std::string& data) {
    const std::string all = name + data;
    const auto* first = reinterpret_cast<const unsigned char*>(all.data());
    return number(data.size()) + all + number(crc32(0, first, static_cast<unsigned>(all.size())));
  };
  const std::string row = text({0, 0, 200, 0, 255, 1, 0, 255, 255});
  std::string packed(100, '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(row.data()),
             row.size());
  packed.resize(size);
  const auto file = folder.write(
      "gray.png", "\x89PNG\r\n\x1a\n" + chunk("IHDR", number(4) + number(1) + text({16, 0, 0, 0, 0})) +
                      chunk("IDAT", packed) + chunk("IEND", ""));
  const at::Tensor image = acc::read_image(file);
  REQUIRE(image.sizes() == c10::IntArrayRef({3, 1, 4}));
  for (int color = 0; color < 3; ++color) {
    CHECK(image[color][0][0].item<int>() == 200);
    for (int place = 1; place < 4; ++place) CHECK(image[color][0][place].item<int>() == 255);
  }
}

TEST_CASE("image: a draft is at least as large as requested", "[runtime]") {
  if (!acc::detail::has_jpeg()) SUCCEED("built without libjpeg-turbo");
  const auto size = [](std::int64_t draft) {
    return acc::read_image(kImages / "color.jpg", {.draft_size = draft}).sizes().vec();
  };
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  CHECK(size(0) == std::vector<std::int64_t>{3, 47, 61});
  CHECK(size(25) == std::vector<std::int64_t>{3, 47, 61});
  CHECK(size(24) == std::vector<std::int64_t>{3, 24, 31});
  CHECK(size(7) == std::vector<std::int64_t>{3, 12, 16});
  CHECK(size(1) == std::vector<std::int64_t>{3, 6, 8});
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
