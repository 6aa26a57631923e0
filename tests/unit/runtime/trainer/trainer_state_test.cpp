// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_state.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace trainer_state_test {

using acc::test::error_of;
using acc::test::TemporaryFolder;

TEST_CASE("trainer_state: transformers' state of a training is read, and ours has its names", "[runtime]") {
  const TemporaryFolder folder;
  acc::TrainerState state{.epoch = 1.5, .global_step = 3};
  state.log_history = {{{"loss", 0.5}, {"step", 2}}};
  state.best_metric = 0.25;
  state.num_input_tokens_seen = 7;
  const auto file = folder.write("trainer_state.json", acc::to_json(state));
  const acc::TrainerState again = acc::read_trainer_state(file);
  CHECK(again.epoch == 1.5);
  CHECK(again.log_history == state.log_history);
  CHECK(again.best_metric == 0.25);
  CHECK(again.num_input_tokens_seen == 7);
  CHECK(acc::to_json(again) == acc::to_json(state));
  const auto broken = folder.write("broken.json", "{");
  CHECK(error_of([&] {
          acc::read_trainer_state(broken);
        }).starts_with(broken.string() + ": is not the state of a Trainer"));
}

TEST_CASE("trainer_state: Python's words for numbers that are not finite are read", "[runtime]") {
  const TemporaryFolder folder;
  const auto file = folder.write("trainer_state.json", R"({
  "best_metric": Infinity, "best_model_checkpoint": "run NaN \" Infinity/checkpoint-3", "epoch": 1.5, "global_step": 3,
  "log_history": [{"grad_norm": NaN, "eval_a": Infinity, "eval_b": -Infinity, "eval_c": -1, "step": 3}],
  "stateful_callbacks": {"Say": {"attributes": {"best": -Infinity, "word": "NaN"}}}
})");
  const acc::TrainerState state = acc::read_trainer_state(file);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(state.best_metric == infinity);
  CHECK(state.best_model_checkpoint == "run NaN \" Infinity/checkpoint-3");
  const acc::Metrics& entry = state.log_history.at(0);
  CHECK(std::isnan(entry.at("grad_norm")));
  CHECK(entry.at("eval_a") == infinity);
  CHECK(entry.at("eval_b") == -infinity);
  CHECK(entry.at("eval_c") == -1);
  CHECK(state.stateful_callbacks.at("Say") == R"({"attributes":{"best":"-Infinity","word":"NaN"}})");
  for (const char* broken : {R"({"epoch": Infinit})", R"({"epoch": "NaN)", R"({"epoch": "a\)"}) {
    const auto other = folder.write("broken.json", broken);
    CHECK(error_of([&] {
            acc::read_trainer_state(other);
          }).starts_with(other.string() + ": is not the state of a Trainer"));
  }
}

}  // namespace trainer_state_test
