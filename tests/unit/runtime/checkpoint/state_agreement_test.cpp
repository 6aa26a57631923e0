// SPDX-License-Identifier: Apache-2.0
// Of one process; tests/runtime/memory_states_test.cpp has those of several.
#include "acc/runtime/checkpoint/state_agreement.hpp"

#include "acc/runtime/checkpoint/snapshot_seal.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace state_agreement_test {

namespace {

namespace fs = std::filesystem;

struct Fixture {
  acc::test::TemporaryFolder folder = {};
  acc::SavedStates states{folder.path() / "training_0_0"};
  std::vector<std::string> told = {};

  void save(std::int64_t number) const {
    folder.write("training_0_0/snapshot_" + std::to_string(number) + "/model.safetensors", "weights");
    for (const auto& step : acc::detail::seal_of({.id = "a-" + std::to_string(number)}, {}))
      step(states.snapshot(number));
  }
  std::optional<std::int64_t> newest() {
    const auto state = acc::detail::newest_common_state(
        states, {}, [this](const std::string& line) { told.push_back(line); });
    return state ? std::optional(state->number) : std::nullopt;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "state_agreement: numbers go on after the highest", "[runtime]") {
  CHECK(acc::detail::agree_on_numbering(states, "id", {}).next == 0);
  save(4);
  states.add_on_disk(7, "/nowhere");
  const auto numbering = acc::detail::agree_on_numbering(states, "id", {});
  CHECK(numbering.next == 8);
  CHECK(numbering.run_id == "id");
}

TEST_CASE_METHOD(Fixture, "state_agreement: the newest that is undamaged and there", "[runtime]") {
  CHECK_FALSE(newest());
  save(1);
  save(2);
  fs::create_directories(folder.path() / "disk");
  states.add_on_disk(3, folder.path() / "disk");
  save(4);
  CHECK(newest() == 4);
  folder.write("training_0_0/snapshot_4/model.safetensors", "Weights");
  CHECK(told.empty());
  CHECK(newest() == 3);
  CHECK(told.size() == 1);
  fs::remove(folder.path() / "disk");
  CHECK(newest() == 2);
  // Its record is damaged: it is not even a candidate.
  folder.write("training_0_0/snapshot_2/snapshot.json", "{");
  CHECK(newest() == 1);
}

}  // namespace state_agreement_test
