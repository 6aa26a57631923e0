// SPDX-License-Identifier: Apache-2.0
// Steps on several processes are tested by runtime/sharded_training_test.
#include "acc/runtime/sharded/sharded_optimizer.hpp"

#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_shards.hpp"

namespace sharded_optimizer_test {

using Shards = acc::test::LoneShards<torch::optim::SGD>;

TEST_CASE("sharded_optimizer: the optimizer's parameters become parts of the shards, in their groups",
          "[runtime]") {
  Shards shards(torch::nn::Linear(2, 3), torch::optim::SGDOptions(0.1));
  const auto& parameters = shards.native.param_groups().at(0).params();
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].numel() == 6);
  CHECK(parameters[1].numel() == 3);
  for (const at::Tensor& parameter : parameters) {
    CHECK(parameter.dim() == 1);
    CHECK(parameter.is_alias_of(shards.module->units().front()->shard()));
    CHECK(shards.module->has_parameter(parameter));
  }
  REQUIRE(shards.optimizer.groups().size() == 1);
  CHECK(shards.optimizer.groups()[0].at(1).unit == shards.module->units().front().get());
  CHECK(acc::detail::has_sharded_parameters(
      torch::optim::SGD(shards.net->parameters(), torch::optim::SGDOptions(0.1))));
}

TEST_CASE("sharded_optimizer: one that does not treat each element alike is refused", "[runtime]") {
  torch::nn::Linear linear(2, 2);
  torch::optim::LBFGS optimizer(linear->parameters());
  CHECK(acc::test::error_of([&] { acc::detail::ShardedOptimizer(optimizer, {}); }) ==
        "optimizer of a sharded model: it is not known to treat each element alike, so it cannot step on "
        "shards (SGD, Adam, AdamW, RMSprop and Adagrad can)");
}

}  // namespace sharded_optimizer_test
