// SPDX-License-Identifier: Apache-2.0
// Norms over several processes are tested by runtime/sharded_training_test.
#include "acc/runtime/sharded/sharded_gradients.hpp"

#include <ATen/ops/full_like.h>
#include <torch/optim/sgd.h>

#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_shards.hpp"
#include "support/torch_tensor.hpp"

namespace sharded_gradients_test {

using Shards = acc::test::LoneShards<torch::optim::SGD>;

TEST_CASE("sharded_gradients: of whole parameters they are their gradients, each once", "[runtime]") {
  const at::Tensor weight = acc::test::numbers({1, 2}, {2}, at::kFloat);
  weight.mutable_grad() = acc::test::numbers({3, 4}, {2}, at::kFloat);
  const at::Tensor unused = acc::test::numbers({1}, {1}, at::kFloat);
  CHECK_FALSE(acc::detail::any_is_sharded({weight, unused}));
  const acc::detail::LocalGradients gradients = acc::detail::local_gradients({weight, weight, unused});
  CHECK(gradients.sharded.empty());
  REQUIRE(gradients.whole.size() == 1);
  CHECK(gradients.whole[0].is_alias_of(weight.grad()));
}

TEST_CASE("sharded_gradients: the parts in the shards are clipped by the norm of all", "[runtime]") {
  Shards shards(torch::nn::Linear(2, 2), torch::optim::SGDOptions(0.1));
  CHECK(acc::detail::any_is_sharded(shards.net->parameters()));
  for (std::size_t piece = 0; piece < 2; ++piece) {
    const at::Tensor& part = shards.part(piece);
    part.mutable_grad() = at::full_like(part, piece == 0 ? 3 : 4);
  }
  // Four times 3, and twice 4.
  const at::Tensor norm =
      acc::detail::clip_sharded_grad_norm(shards.net->parameters(), 1.0, 2.0, *shards.group);
  CHECK(norm.item<double>() == Approx(std::sqrt(4 * 9.0 + 2 * 16.0)));
  CHECK(shards.part(0).grad()[0].item<double>() == Approx(3 / std::sqrt(68.0)));
  CHECK(acc::test::error_of([&] {
          acc::detail::clip_sharded_grad_norm(shards.net->parameters(), 1.0, 0.0, *shards.group);
        }) == "clip_grad_norm_, norm_type: must be above 0 for a sharded model, not 0");
}

}  // namespace sharded_gradients_test
