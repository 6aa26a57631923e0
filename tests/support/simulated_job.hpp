// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/launch/agent.hpp"

namespace acc::test {

using namespace launcher;

/// Numbers that follow from a seed and a purpose, the same on each machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed, std::uint64_t purpose = 0, std::uint64_t part = 0);

  /// From 0 to `count` - 1.
  int below(int count);
  bool chance(int percent) { return below(100) < percent; }
  std::chrono::milliseconds milliseconds(int from, int to);

 private:
  std::uint64_t state_;
};

/// What happens to a job from outside, at a time after its start.
struct Disturbance {
  enum class Kind {
    signal,           ///< `number`: which one, `receiver`: of acc's processes
    stop_request,     ///< acc stop; `number` 1: at once
    reader_lost,      ///< of acc's output
    supervisor_lost,  ///< with SIGKILL
    hang,             ///< all ranks are idle
    others_fail,      ///< a worker of another node fails; `number` 1: the job starts again
    others_lost,      ///< another node is lost, and the nodes meet again; `number` 1: without a restart
    others_notice,    ///< another node tells of a notice
  };
  std::chrono::milliseconds time = {};
  Kind kind = {};
  int number = 0;
  int receiver = 0;
};
std::string to_string(const Disturbance& one);

/// One execution of the agent: everything in it follows from the seed, the plan and the disturbances.
struct Schedule {
  std::uint64_t seed = 0;
  LaunchPlan plan = {};
  int num_machines = 1;
  bool has_checks = false;
  bool has_states = false;
  std::vector<Disturbance> disturbances = {};
};
Schedule schedule_of(std::uint64_t seed);

/// What was promised and did not hold.
struct Violation : std::runtime_error {
  Violation(std::string name, const std::string& text) : std::runtime_error(text), promise(std::move(name)) {}

  /// Its name, the same in each execution that does not keep it.
  std::string promise;
};

/// Runs the agent that ships with workers, other nodes and users of this schedule, and checks after each
/// event what it promises. Returns what happened, a line each. Throws Violation.
std::vector<std::string> execute(const Schedule& schedule);

/// Without the disturbances without which the same promise is not kept.
Schedule shortened(Schedule schedule);

}  // namespace acc::test
