// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"

namespace jpeg_test {

TEST_CASE("jpeg: a draft is at least as large as requested", "[runtime]") {
  const auto size = [](std::int64_t draft) {
    return acc::read_image(ACC_TEST_DATA "/runtime/images/color.jpg", {.draft_size = draft}).sizes().vec();
  };
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  CHECK(size(0) == std::vector<std::int64_t>{3, 47, 61});
  CHECK(size(25) == std::vector<std::int64_t>{3, 47, 61});
  CHECK(size(24) == std::vector<std::int64_t>{3, 24, 31});
  CHECK(size(7) == std::vector<std::int64_t>{3, 12, 16});
  CHECK(size(1) == std::vector<std::int64_t>{3, 6, 8});
}

namespace {

std::string failure_of(const std::string& bytes) {
  return acc::test::error_of([&] { acc::decode_image(bytes); });
}

}  // namespace

TEST_CASE("jpeg: stray bytes are skipped, but do not hide that the end is missing", "[runtime]") {
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  const std::string jpeg = acc::read_file(ACC_TEST_DATA "/runtime/images/color.jpg");
  const std::string_view tables = GENERATE("\xff\xdb", "\xff\xc4", "\xff\xda");
  std::string stray = jpeg;
  stray.insert(jpeg.find(tables), 3, '\0');
  REQUIRE(failure_of(stray) == "no error");
  CHECK(acc::decode_image(stray).equal(acc::decode_image(jpeg)));
  const std::size_t data = stray.find("\xff\xda");
  for (const std::size_t size : {data + (stray.size() - data) / 2, stray.size() - 2, stray.size() - 1})
    CHECK(failure_of(stray.substr(0, size)) == "is a broken JPEG image: its end is missing");
  // The space of a file that was not downloaded to its end.
  std::string unfinished = jpeg;
  std::fill(unfinished.begin() + static_cast<std::ptrdiff_t>(data + 20), unfinished.end(), '\0');
  CHECK(failure_of(unfinished).starts_with("is a broken JPEG image: "));
}

TEST_CASE("jpeg: damaged data of a scan, which goes on at its restart markers, hides no end", "[runtime]") {
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  const std::string jpeg = acc::read_file(ACC_TEST_DATA "/runtime/images/restarts.jpg");
  std::string damaged = jpeg;
  damaged.replace(jpeg.find("\xff\xda") + 20, 2, "\xff\x25");  // looks like a segment
  CHECK(failure_of(damaged) == "no error");
  CHECK(failure_of(damaged.substr(0, jpeg.size() - 20)) == "is a broken JPEG image: its end is missing");
}

TEST_CASE("jpeg: an error after a warning is an error, also after an image with the tables", "[runtime]") {
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  std::string jpeg = acc::read_file(ACC_TEST_DATA "/runtime/images/color.jpg");
  acc::decode_image(jpeg);
  jpeg.insert(jpeg.find("\xff\xc4"), 3, '\0');
  for (std::size_t at = 0; (at = jpeg.find("\xff\xdb", at)) != std::string::npos;) jpeg[at + 1] = '\xef';
  CHECK(failure_of(jpeg) == "is a broken JPEG image: Quantization table 0x00 was not defined");
}

TEST_CASE("jpeg: an image that is too large is refused before it takes memory", "[runtime]") {
  if (!acc::detail::has_jpeg()) return acc::test::skip("built without libjpeg-turbo");
  std::string jpeg = acc::read_file(ACC_TEST_DATA "/runtime/images/color.jpg");
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xff\xdc\xff\xdc");
  CHECK(failure_of(jpeg) == "has 65500 x 65500 pixels, more than the 178956970 that are read");
}

}  // namespace jpeg_test
