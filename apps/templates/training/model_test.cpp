// SPDX-License-Identifier: Apache-2.0
// ctest --test-dir build
#include "model.hpp"

#include <torch/optim/sgd.h>

#include <cstdio>

int failures = 0;

void check(bool holds, const char* what) {
  std::printf("%s: %s\n", holds ? "ok" : "FAILED", what);
  if (!holds) ++failures;
}

int main() {
  torch::manual_seed(0);
  const Spirals spirals(100);
  const auto [point, arm] = spirals.get(99);
  check(point.sizes() == at::IntArrayRef{2} && point.norm().item<double>() <= 1,
        "a point lies in the unit circle");
  check(arm.item<std::int64_t>() == 1, "odd samples are on the second arm");

  Net net;
  const at::Tensor points = torch::randn({8, 2});
  const at::Tensor output = net(points);
  check(output.sizes() == at::IntArrayRef{8, 2}, "there is an output for each arm");
  check(output.exp().sum(1).allclose(torch::ones({8})), "outputs are log-probabilities");

  torch::optim::SGD sgd(net->parameters(), 0.1);
  const at::Tensor arms = torch::zeros({8}, torch::kLong);
  const at::Tensor before = torch::nll_loss(net(points), arms);
  before.backward();
  sgd.step();
  check(torch::nll_loss(net(points), arms).item<double>() < before.item<double>(), "a step lowers the loss");
  return failures == 0 ? 0 : 1;
}
