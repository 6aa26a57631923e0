// SPDX-License-Identifier: Apache-2.0
// That the events are those of PyTorch's SummaryWriter is tested by parity/tracking.
#include "acc/runtime/tracking/media_events.hpp"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <vector>

#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"
#include "support/torch_tensor.hpp"

namespace media_events_test {

TEST_CASE("media events: an image is encoded without loss", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const at::Tensor image = at::arange(2 * 5 * 3, at::kByte).reshape({2, 5, 3});
  CHECK(acc::decode_image(acc::detail::encode_png(image)).equal(image.permute({2, 0, 1})));
}

TEST_CASE("media events: what is not an image is an error", "[runtime]") {
  for (const at::Tensor& no_image : {at::zeros({4, 4}), at::zeros({5, 4, 4})})
    CHECK(acc::test::error_of([&] { acc::detail::images_event({}, "tag", no_image); }) ==
          "tag: is not a batch of images: its shape must be [N, C, H, W] with 1, 3 or 4 channels");
}

TEST_CASE("media events: a histogram leaves out what is not finite, and needs a value in its bins",
          "[runtime]") {
  const double infinite = std::numeric_limits<double>::infinity();
  const double no_number = std::numeric_limits<double>::quiet_NaN();
  const auto histogram = [](const std::vector<double>& values) {
    return acc::detail::histogram_event(
        {}, "tag", acc::test::numbers(values, {static_cast<std::int64_t>(values.size())}, at::kDouble));
  };
  REQUIRE(histogram({1, -2}));
  CHECK(histogram({1, no_number, infinite, -2, -infinite}) == histogram({1, -2}));
  CHECK(histogram({0})->find("tag") != std::string::npos);
  CHECK_FALSE(histogram({}));
  CHECK_FALSE(histogram({no_number, infinite}));
  CHECK_FALSE(histogram({1e21, -1e30}));
}

TEST_CASE("media events: a histogram of lazily negated numbers is that of their values", "[runtime]") {
  const at::Tensor numbers = at::full({3}, 2, at::kDouble);
  CHECK(acc::detail::histogram_event({}, "tag", at::_neg_view(numbers)) ==
        acc::detail::histogram_event({}, "tag", -numbers));
}

}  // namespace media_events_test
