// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/save_steps.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <map>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace save_steps_test {

namespace {

namespace fs = std::filesystem;
using acc::detail::CheckpointSave;

// A training on one process with tensors in all kinds of files.
struct Training {
  torch::nn::Linear net = torch::nn::Linear(8, 8);
  torch::optim::Adam optimizer = torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.01));
  at::Tensor average = at::full({3}, 2.0).t();

  Training() {
    net->forward(at::randn({4, 8})).square().mean().backward();
    optimizer.step();
  }

  acc::CheckpointContent content() {
    const acc::Stateful registered = {
        .state = [this] { return acc::PtDict{{"all", acc::PtTuple{{acc::PtList{average}}}}}; }};
    return {.models = {net.get()},
            .optimizers = {&optimizer},
            .registered = {registered},
            .step = 5,
            .accumulates = true};
  }

  // Changes in place everything that a checkpoint has.
  void change() {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : net->parameters()) {
      parameter.zero_();
      parameter.mutable_grad().zero_();
      void* key = parameter.unsafeGetTensorImpl();
      static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(key)).exp_avg().zero_();
    }
    average.zero_();
    at::randn({100});
  }
};

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = acc::read_file(entry.path());
  return files;
}

}  // namespace

TEST_CASE("checkpoint save: with copies it writes the state of its beginning, to the byte", "[runtime]") {
  const bool safe = GENERATE(true, false);
  const fs::path folder = acc::test::temporary_folder();
  const acc::SaveCheckpointOptions options{.safe_serialization = safe};
  acc::set_seed(1);
  Training training;
  acc::save_checkpoint(folder / "at_once", training.content(), {}, options);
  acc::detail::TensorCopies copies;
  CheckpointSave save(folder / "later", training.content(), {}, options, &copies);
  training.change();
  CHECK_FALSE(fs::exists(folder / "later"));
  save.finish({});
  CHECK(files_in(folder / "later").size() == 5);
  CHECK(files_in(folder / "later") == files_in(folder / "at_once"));
}

}  // namespace save_steps_test
