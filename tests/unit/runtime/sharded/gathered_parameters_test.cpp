// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/gathered_parameters.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/optim/sgd.h>

#include <optional>

#include "support/catch.hpp"
#include "support/lone_shards.hpp"

namespace gathered_parameters_test {

TEST_CASE("gathered_parameters: without a sharded module nothing happens", "[runtime]") {
  const acc::GatheredParameters none(nullptr);
}

TEST_CASE("gathered_parameters: what is changed in them is there when they are gathered again", "[runtime]") {
  acc::test::LoneShards<torch::optim::SGD> shards(torch::nn::Linear(2, 2), torch::optim::SGDOptions(0.1));
  const at::NoGradGuard no_grad;
  {
    const acc::GatheredParameters whole(shards.module);
    shards.net->weight.fill_(3);
  }
  CHECK_FALSE(shards.module->units().front()->is_allocated());
  const acc::GatheredParameters whole(shards.module);
  CHECK(shards.net->weight.eq(3).all().item<bool>());
}

}  // namespace gathered_parameters_test
