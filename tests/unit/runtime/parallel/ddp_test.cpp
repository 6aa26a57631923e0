// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/ddp.hpp"

#include <torch/nn/modules/linear.h>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace ddp_test {

TEST_CASE("ddp: a missing module or process group is an error", "[runtime]") {
  const auto linear = torch::nn::Linear(2, 2).ptr();
  CHECK(acc::test::error_of([&] {
          acc::Ddp<torch::nn::LinearImpl>(linear, nullptr);
        }).starts_with("Ddp: has no process group: a process alone has none"));
  CHECK(acc::test::error_of([&] {
          acc::Ddp<torch::nn::LinearImpl>(nullptr, nullptr);
        }).starts_with("Ddp: has no module"));
}

}  // namespace ddp_test
