// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <initializer_list>
#include <string>

#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"

namespace png_test {

namespace {

std::string text(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::string number(std::size_t value) {
  return text(
      {int(value >> 24U & 255U), int(value >> 16U & 255U), int(value >> 8U & 255U), int(value & 255U)});
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string all = name + data;
  const auto* first = reinterpret_cast<const unsigned char*>(all.data());
  return number(data.size()) + all + number(crc32(0, first, static_cast<unsigned>(all.size())));
}

// A PNG image of gray values of 16 bits, with the compressed rows.
std::string wide_gray(std::size_t width, std::size_t height, const std::string& rows) {
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", number(width) + number(height) + text({16, 0, 0, 0, 0})) +
         chunk("IDAT", rows) + chunk("IEND", "");
}

}  // namespace

TEST_CASE("png: gray values of 16 bits are limited to 255, as Pillow's", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  // 200, 255, 256 and 65535 in a row.
  const std::string row = text({0, 0, 200, 0, 255, 1, 0, 255, 255});
  std::string packed(100, '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(row.data()),
             row.size());
  packed.resize(size);
  const at::Tensor image = acc::decode_image(wide_gray(4, 1, packed));
  REQUIRE(image.sizes() == c10::IntArrayRef({3, 1, 4}));
  for (int color = 0; color < 3; ++color) {
    CHECK(image[color][0][0].item<int>() == 200);
    for (int column = 1; column < 4; ++column) CHECK(image[color][0][column].item<int>() == 255);
  }
}

TEST_CASE("png: an image that is too large is refused before it takes memory", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  CHECK(acc::test::error_of([] { acc::decode_image(wide_gray(1'000'000, 1'000'000, "")); }) ==
        "has 1000000 x 1000000 pixels, more than the 178956970 that are read");
}

}  // namespace png_test
