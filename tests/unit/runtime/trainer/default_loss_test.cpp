// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/default_loss.hpp"

#include <torch/torch.h>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace default_loss_test {

using acc::test::error_of;

TEST_CASE("default_loss: the labels determine the loss", "[runtime]") {
  torch::manual_seed(0);
  const at::Tensor logits = torch::randn({4, 3, 5});
  at::Tensor words = torch::randint(5, {4, 3});
  words[0][0] = -100;
  CHECK(acc::default_loss(logits, words).item<double>() ==
        Approx(torch::nn::functional::cross_entropy(logits.view({12, 5}), words.view({12})).item<double>()));
  CHECK(acc::default_loss(torch::ones({3, 1}), torch::zeros({3})).item<double>() == 1);
  CHECK(error_of([&] { acc::default_loss(logits, torch::zeros({4}, torch::kLong)); }) ==
        "Trainer: there is no loss for logits [4, 3, 5] with labels [4] (override compute_loss)");
}

TEST_CASE("default_loss: labels that are numbers are not smoothed silently", "[runtime]") {
  CHECK(error_of([] { acc::default_loss(torch::ones({3}), torch::zeros({3}), 0.1); }) ==
        "label_smoothing_factor: smooths labels that are classes, and these are numbers (leave it out)");
}

TEST_CASE("default_loss: a step has a loss of one element, in any dimensions", "[runtime]") {
  using acc::detail::loss_of_step;
  CHECK(loss_of_step(torch::full({1, 1}, 0.5)).sizes().empty());
  CHECK(loss_of_step(torch::full({}, 0.5)).item<double>() == 0.5);
  CHECK(error_of([] { loss_of_step(torch::ones({2, 3})); }) ==
        "compute_loss: the loss has the sizes [2, 3] instead of one element (take its mean)");
  CHECK(error_of([] { loss_of_step({}); }) ==
        "compute_loss: there is no loss to train with (set LossOutput::loss, also in training)");
}

}  // namespace default_loss_test
