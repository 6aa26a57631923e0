// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_state.hpp"

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

}  // namespace trainer_state_test
