// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/accumulated_gradients.hpp"

#include <torch/nn/modules/linear.h>

#include <cmath>

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace {

// A process's model, whose gradient is `value` everywhere.
torch::nn::Linear model_with(double value) {
  torch::nn::Linear model(torch::nn::LinearOptions(2, 1).bias(false));
  model->weight.mutable_grad() = acc::test::numbers({value, value}, {1, 2}, at::kFloat);
  return model;
}

acc::CheckpointContent content_of(torch::nn::Linear& model, int num_processes) {
  return {.models = {model.get()}, .accumulates = true, .num_processes = num_processes};
}

}  // namespace

TEST_CASE("accumulated_gradients: their mean over the processes stays, whatever their number becomes",
          "[runtime]") {
  const auto folder = acc::test::temporary_folder();
  // What three processes leave; each writes its own file into one folder.
  for (int process = 2; process >= 0; --process) {
    torch::nn::Linear model = model_with(process + 1);
    const auto own = acc::test::temporary_folder() / "checkpoint";
    acc::save_checkpoint(own, content_of(model, 3), {.index = process});
    for (const auto& file : std::filesystem::directory_iterator(own))
      std::filesystem::copy_file(file.path(), folder / file.path().filename());
  }

  const int processes = GENERATE(1, 2, 3, 5);
  double sum = 0;
  for (int process = 0; process < processes; ++process) {
    torch::nn::Linear model = model_with(99);
    acc::load_checkpoint(folder, content_of(model, processes), process, {});
    const at::Tensor gradient = model->weight.grad();
    if (gradient.defined()) sum += gradient.sum().item<double>() / 2;
  }
  CHECK(std::abs(sum / processes - (1.0 + 2.0 + 3.0) / 3) < 1e-6);
}

TEST_CASE("accumulated_gradients: those of another model are refused, and nothing is changed", "[runtime]") {
  torch::nn::Linear model = model_with(1);
  acc::PtList wrong;
  wrong.emplace_back(acc::PtDict{{"other", model->weight.detach()}});
  CHECK(acc::test::error_of([&] { acc::plan_gradients_load({model.get()}, {acc::PtValue(wrong)}, 1); }) ==
        "accumulated gradients: the model has no parameter 'other'");
  CHECK(acc::test::error_of([&] { acc::plan_gradients_load({model.get()}, {acc::PtValue(3)}, 1); }) ==
        "accumulated gradients: are those of other models");
  CHECK(model->weight.grad().sum().item<double>() == 2);
}
