// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <string>

#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace png_test {

TEST_CASE("png: gray values of 16 bits are limited to 255, as Pillow's", "[runtime]") {
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
    for (int column = 1; column < 4; ++column) CHECK(image[color][0][column].item<int>() == 255);
  }
}

}  // namespace png_test
