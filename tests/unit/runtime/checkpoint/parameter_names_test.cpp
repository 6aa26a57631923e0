// SPDX-License-Identifier: Apache-2.0
// What accelerate itself writes is loaded by parity/sharded_states.
#include "acc/runtime/checkpoint/parameter_names.hpp"

#include <ATen/ops/full.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace parameter_names_test {

namespace {

namespace fs = std::filesystem;
using acc::PtDict;
using acc::PtList;
using acc::PtValue;
using acc::test::error_of;

// The module has the weight first, the optimizer the bias.
struct Training {
  torch::nn::Linear linear = torch::nn::Linear(torch::nn::LinearOptions(3, 1));
  torch::optim::Adam optimizer =
      torch::optim::Adam({linear->bias, linear->weight}, torch::optim::AdamOptions(0.01));

  acc::CheckpointContent content() { return {.models = {linear.get()}, .optimizers = {&optimizer}}; }
};

PtDict moments(double value, at::IntArrayRef shape) {
  return {{"step", acc::detail::steps_tensor(2)},
          {"exp_avg", at::full(shape, value)},
          {"exp_avg_sq", at::full(shape, value)}};
}

// As get_optimizer_state_dict of PyTorch returns it.
PtValue named_state(const PtList& names) {
  return PtDict{{"state", PtDict{{"weight", moments(0.5, {1, 3})}, {"bias", moments(0.25, {1})}}},
                {"param_groups", PtList{PtDict{{"lr", 0.125},
                                               {"betas", acc::PtTuple{{0.9, 0.99}}},
                                               {"eps", 1e-8},
                                               {"weight_decay", 0.0},
                                               {"amsgrad", false},
                                               {"params", names}}}}};
}

}  // namespace

TEST_CASE("parameter names: a state by names gets the numbers of the optimizer's own order", "[runtime]") {
  Training training;
  const PtValue numbered =
      acc::detail::with_numbers(training.content(), 0, named_state({"weight", "bias"}), "optimizer.bin");
  const PtValue* states = numbered.find("state");
  CHECK(states->find(std::int64_t{0})->find("exp_avg")->get_if<at::Tensor>()->equal(at::full({1}, 0.25)));
  CHECK(states->find(std::int64_t{1})->find("exp_avg")->get_if<at::Tensor>()->equal(at::full({1, 3}, 0.5)));
  const PtValue& group = numbered.find("param_groups")->get_if<PtList>()->front();
  CHECK(group.find("lr")->number() == 0.125);
  CHECK(group.find("params")->get_if<PtList>()->size() == 2);
  // One by numbers stays as it is.
  const PtValue renumbered = acc::detail::with_numbers(training.content(), 0, numbered, "optimizer.bin");
  CHECK(renumbered.find("state")->get_if<PtDict>()->size() == 2);
}

TEST_CASE("parameter names: what does not fit is named", "[runtime]") {
  Training training;
  const auto error = [&](const PtValue& state) {
    return error_of([&] { acc::detail::with_numbers(training.content(), 0, state, "optimizer.bin"); });
  };
  CHECK(error(named_state({"weight", "bia"})) ==
        "optimizer.bin: parameter group 0 has 'bia', which the optimizer's has not");
  CHECK(error(named_state({"weight"})) ==
        "optimizer.bin: parameter group 0 lacks 'bias', which the optimizer has");
  CHECK(error(PtDict{{"state", PtDict{}},
                     {"param_groups", PtList{PtDict{{"params", PtList{"weight"}}}, PtDict{}}}}) ==
        "optimizer.bin: has 2 parameter groups, the optimizer 1");

  torch::nn::Linear stranger(1, 1);
  training.optimizer.add_param_group(torch::optim::OptimizerParamGroup({stranger->weight}));
  CHECK(error(named_state({"weight", "bias"})).find("not those of one prepared model") != std::string::npos);
}

TEST_CASE("parameter names: accelerate's full checkpoint of FSDP is loaded by a process alone", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  acc::write_pt_file(folder / "pytorch_model_fsdp.bin",
                     PtDict{{"weight", at::full({1, 3}, 7.0)}, {"bias", at::full({1}, 8.0)}});
  acc::write_pt_file(folder / "optimizer.bin", named_state({"weight", "bias"}));
  Training training;
  acc::load_checkpoint(folder, training.content(), 0);
  CHECK(training.linear->weight.equal(at::full({1, 3}, 7.0)));
  CHECK(training.linear->bias.equal(at::full({1}, 8.0)));
  CHECK(training.optimizer.param_groups()[0].options().get_lr() == 0.125);
  void* key = training.linear->weight.unsafeGetTensorImpl();
  const auto& state = static_cast<torch::optim::AdamParamState&>(*training.optimizer.state().at(key));
  CHECK(state.exp_avg().equal(at::full({1, 3}, 0.5)));
  CHECK(state.step() == 2);
  // The next checkpoint in this folder replaces all of it.
  acc::save_checkpoint(folder, training.content(), {});
  CHECK_FALSE(fs::exists(folder / "pytorch_model_fsdp.bin"));
}

}  // namespace parameter_names_test
