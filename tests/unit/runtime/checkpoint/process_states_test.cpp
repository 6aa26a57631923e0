// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/process_states.hpp"

#include <ATen/ops/rand.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace process_states_test {

TEST_CASE("random states: numbers continue where they were saved", "[runtime]") {
  acc::set_seed(3);
  at::rand({5});
  const acc::PtValue states = acc::detail::random_states(7);
  const at::Tensor next = at::rand({5});
  CHECK(acc::detail::load_random_states(states, "f") == 7);
  CHECK(at::rand({5}).equal(next));
}

TEST_CASE("random states: files of Python are loaded", "[runtime]") {
  const auto file = std::filesystem::path(ACC_TEST_DATA) / "runtime" / "pt" / "random.pt";
  CHECK(acc::detail::load_random_states(acc::read_pt_file(file), "f") == 3);
  const at::Tensor numbers = at::rand({5});
  acc::detail::load_random_states(acc::read_pt_file(file), "f");
  CHECK(at::rand({5}).equal(numbers));
}

TEST_CASE("random states: those of absent devices are ignored", "[runtime]") {
  acc::PtValue states = acc::detail::random_states(1);
  std::get<acc::PtDict>(states.content)
      .push_back({"torch_cuda_manual_seed", acc::PtList{acc::test::numbers({1, 2}, {2}, at::kByte),
                                                        acc::test::numbers({3}, {1}, at::kByte)}});
  CHECK(acc::detail::load_random_states(states, "f") == 1);
}

TEST_CASE("random states: other content is an error", "[runtime]") {
  const acc::PtValue none =
      GENERATE(acc::PtValue(), acc::PtValue(acc::PtDict{{"torch_manual_seed", 5}}),
               acc::PtValue(acc::PtDict{{"torch_manual_seed", acc::test::numbers({1, 2}, {2}, at::kByte)}}));
  CHECK(acc::test::error_of([&] { acc::detail::load_random_states(none, "f"); }) ==
        "f: does not contain the state of LibTorch's generator");
}

namespace {

// The model of a process, with all gradients equal to `value`.
torch::nn::Linear model_with(double value) {
  torch::nn::Linear model(torch::nn::LinearOptions(2, 1).bias(false));
  model->weight.mutable_grad() = acc::test::numbers({value, value}, {1, 2}, at::kFloat);
  return model;
}

acc::CheckpointContent content_of(torch::nn::Linear& model, int num_processes) {
  return {.models = {model.get()}, .accumulates = true, .num_processes = num_processes};
}

}  // namespace

TEST_CASE("accumulated_gradients: their mean over the processes stays the same on any number of processes",
          "[runtime]") {
  const auto folder = acc::test::temporary_folder();
  // The files of three processes; each writes its own file into the same folder.
  for (int process = 2; process >= 0; --process) {
    torch::nn::Linear model = model_with(process + 1);
    const auto local = acc::test::temporary_folder() / "checkpoint";
    acc::save_checkpoint(local, content_of(model, 3), {.index = process});
    for (const auto& file : std::filesystem::directory_iterator(local))
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

TEST_CASE("accumulated_gradients: those of another model are refused, and nothing changes", "[runtime]") {
  torch::nn::Linear model = model_with(1);
  acc::PtList wrong;
  wrong.emplace_back(acc::PtDict{{"other", model->weight.detach()}});
  CHECK(acc::test::error_of([&] {
          acc::detail::plan_gradients_load({model.get()}, {acc::PtValue(wrong)}, 1);
        }) == "accumulated gradients: the model has no parameter 'other'");
  CHECK(acc::test::error_of([&] { acc::detail::plan_gradients_load({model.get()}, {acc::PtValue(3)}, 1); }) ==
        "accumulated gradients: belong to other models");
  CHECK(model->weight.grad().sum().item<double>() == 2);
}

}  // namespace process_states_test
