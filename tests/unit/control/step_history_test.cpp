// SPDX-License-Identifier: Apache-2.0
#include "acc/control/step_history.hpp"

#include "support/catch.hpp"

namespace step_history_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

TEST_CASE("step_history: survives the way to the client", "[control]") {
  const StepHistory history = {
      .seconds =
          {{.age = 2s, .steps = 7, .data = 1s, .communication = 500ms},
           {.age = 1s, .steps = 9, .data = 1s, .communication = 700ms, .since_step = 30ms, .process = 77}},
      .minutes = {{.age = 60s, .steps = 1}}};
  CHECK(step_history_from_json(to_json(history)) == history);
  CHECK(step_history_from_json(to_json(StepHistory())) == StepHistory());
  CHECK_THROWS_AS(step_history_from_json(nlohmann::json::parse(R"({"seconds":[[1]],"minutes":[]})")),
                  nlohmann::json::exception);
}

}  // namespace step_history_test
