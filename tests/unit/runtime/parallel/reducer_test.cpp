// SPDX-License-Identifier: Apache-2.0
// What it averages over several processes is tested by runtime/ranks_test and parity/ddp.
#include "acc/runtime/parallel/reducer.hpp"

#include <ATen/ops/zeros.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "support/catch.hpp"
#include "support/lone_group.hpp"

namespace reducer_test {

TEST_CASE("reducer: a layout has each parameter once, in buckets of one type", "[runtime]") {
  const std::vector<at::Tensor> parameters{at::zeros({2}), at::zeros({3}), at::zeros({2}, at::kHalf)};
  const auto fits = [&](const acc::detail::BucketLayout& layout) {
    return acc::detail::is_layout_of(layout, parameters, {false, false, false});
  };
  CHECK(fits({{1, 0}, {2}}));
  CHECK_FALSE(fits({{0}, {2}}));
  CHECK_FALSE(fits({{0, 1, 1}, {2}}));
  CHECK_FALSE(fits({{0, 1}, {3}}));
  CHECK_FALSE(fits({{0, 1, 2}}));
  CHECK_FALSE(fits({{0, 1}, {2}, {}}));
}

TEST_CASE("reducer: in a layout, a parameter with sparse gradients is alone", "[runtime]") {
  const std::vector<at::Tensor> parameters{at::zeros({2}), at::zeros({3})};
  CHECK_FALSE(acc::detail::is_layout_of({{0, 1}}, parameters, {false, true}));
  CHECK(acc::detail::is_layout_of({{1}, {0}}, parameters, {false, true}));
}

TEST_CASE("reducer: it continues with the layout of an earlier run", "[runtime]") {
  const auto group = acc::test::lone_group();
  const std::vector<at::Tensor> parameters{at::zeros({2}).requires_grad_(), at::zeros({3}).requires_grad_()};
  const auto reducer = acc::detail::make_reducer(
      parameters, {false, false}, c10::intrusive_ptr<c10d::ProcessGroup>::reclaim_copy(&group->native()), {});
  CHECK(reducer->layout().empty());
  reducer->set_layout({{1}, {0}});
  CHECK(reducer->layout() == acc::detail::BucketLayout{{1}, {0}});
}

}  // namespace reducer_test
