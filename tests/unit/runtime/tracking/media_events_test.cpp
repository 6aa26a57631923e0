// SPDX-License-Identifier: Apache-2.0
// That the events are those of PyTorch's SummaryWriter is tested by parity/tracking.
#include "acc/runtime/tracking/media_events.hpp"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"

namespace media_events_test {

TEST_CASE("media events: an image is encoded without loss", "[runtime]") {
  if (!acc::detail::has_png()) return acc::test::skip("built without libpng");
  const at::Tensor image = at::arange(2 * 5 * 3, at::kByte).reshape({2, 5, 3});
  CHECK(acc::decode_image(acc::detail::encode_png(image)).equal(image.permute({2, 0, 1})));
}

TEST_CASE("media events: what is not an image, or has no histogram, is an error", "[runtime]") {
  for (const at::Tensor& no_image : {at::zeros({4, 4}), at::zeros({5, 4, 4})})
    CHECK(acc::test::error_of([&] { acc::detail::images_event({}, "tag", no_image); }) ==
          "tag: is not a batch of images: its shape must be [N, C, H, W] with 1, 3 or 4 channels");
  const double infinite = std::numeric_limits<double>::infinity();
  for (const at::Tensor& no_values : {at::zeros({0}), at::full({2}, infinite)})
    CHECK(acc::test::error_of([&] { acc::detail::histogram_event({}, "tag", no_values); }) ==
          "tag: has no values, or one that is not finite");
  CHECK(acc::detail::histogram_event({}, "tag", at::zeros({2})).find("tag") != std::string::npos);
}

TEST_CASE("media events: a histogram of lazily negated numbers is that of their values", "[runtime]") {
  const at::Tensor numbers = at::full({3}, 2, at::kDouble);
  CHECK(acc::detail::histogram_event({}, "tag", at::_neg_view(numbers)) ==
        acc::detail::histogram_event({}, "tag", -numbers));
}

}  // namespace media_events_test
