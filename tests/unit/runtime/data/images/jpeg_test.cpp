// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <vector>

#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
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

}  // namespace jpeg_test
