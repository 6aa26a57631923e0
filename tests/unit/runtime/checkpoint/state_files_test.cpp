// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/state_files.hpp"

#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace state_files_test {

namespace {

using Names = std::vector<std::string>;

acc::Stateful stateful(int value) {
  return {.state = [value] { return acc::PtValue(value); }, .load_state = [](const acc::PtValue&) {}};
}

Names names_of(const std::vector<acc::detail::CheckpointFile>& files) {
  Names names;
  for (const acc::detail::CheckpointFile& file : files) names.push_back(file.name);
  return names;
}

}  // namespace

TEST_CASE("state files: what all processes share has accelerate's names", "[runtime]") {
  const acc::NamedTensors weights{{"w", acc::test::numbers({1}, {1}, at::kFloat)}};
  const acc::CheckpointContent content{.schedulers = {stateful(1), stateful(2)}, .registered = {stateful(3)}};
  CHECK(names_of(acc::detail::shared_files(content, {weights, weights}, {acc::PtDict{}}, true)) ==
        Names{"model.safetensors", "model_1.safetensors", "optimizer.bin", "scheduler.bin", "scheduler_1.bin",
              "custom_checkpoint_0.pkl"});
  CHECK(names_of(acc::detail::shared_files({}, {weights}, {}, false)) == Names{"pytorch_model.bin"});
}

TEST_CASE("state files: a process has its random states, and gradients while it accumulates", "[runtime]") {
  CHECK(names_of(acc::detail::own_files({}, 3)) == Names{"random_states_3.pkl"});
  torch::nn::Linear linear(1, 1);
  CHECK(names_of(acc::detail::own_files({.models = {linear.get()}, .accumulates = true}, 3)) ==
        Names{"random_states_3.pkl", "accumulated_gradients_3.bin"});
}

TEST_CASE("state files: each is written in its format", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const acc::NamedTensors weights{{"w", acc::test::numbers({7}, {1}, at::kFloat)}};
  acc::detail::write_files(folder.path(),
                           {{.name = "weights", .content = acc::Safetensors{.tensors = weights}},
                            {.name = "state", .content = acc::PtValue(5)}});
  CHECK(acc::read_safetensors(folder.path() / "weights").tensors.at("w").item<int>() == 7);
  CHECK(acc::read_pt_file(folder.path() / "state").number() == 5);
  CHECK(acc::test::error_of([&] {
          acc::detail::write_files(folder.path() / "weights",
                                   {{.name = "state", .content = acc::PtValue(5)}});
        }).find((folder.path() / "weights").string()) == 0);
}

}  // namespace state_files_test
