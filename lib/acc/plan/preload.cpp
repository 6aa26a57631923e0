// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/preload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "acc/base/text.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/flag_grammars.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

// Bytes above 127 are letters of UTF-8, which names in Python may have.
bool is_identifier(std::string_view word) {
  const auto is_letter = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
           static_cast<unsigned char>(letter) > 127;
  };
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) == 0 &&
         std::ranges::all_of(word, is_letter);
}

bool is_module(const std::string& name) {
  return std::ranges::all_of(split(name, '.'), is_identifier);
}

std::vector<std::string> parse_modules(const Settings& settings) {
  std::vector<std::string> modules;
  for (const std::string& word : split(settings[key::preload], ',')) {
    const std::string name(trim(word));
    if (!is_module(name)) {
      fail(settings.origin(key::preload), fmt::format("'{}' is not the name of a module", name),
           "names are separated by commas, as in torch,transformers");
    }
    modules.push_back(name);
  }
  return modules;
}

// The fork server has one program for all of them.
bool differs_from_worker_to_worker(const LaunchPlan& plan) {
  const std::vector<std::string> first = worker_command(plan, 0);
  const std::vector<std::string> last = worker_command(plan, plan.nproc_per_node - 1);
  std::size_t program = 1;
  while (program < first.size() && (first[program] == "-u" || first[program] == "-m")) ++program;
  return program < first.size() && first[program] != last[program];
}

// Why the workers cannot be forked from a Python; empty: they can.
std::string obstacle(const std::string& name, const WorkerProgram& program, const LaunchPlan& plan) {
  if (plan.delegated) return plan.worker_command.front() + " starts the workers";
  if (program.read_once) return name + " can be read only once";
  if (!program.is_for_python()) return name + " is not a program for Python";
  if (differs_from_worker_to_worker(plan)) return name + " differs from worker to worker";
  return {};
}

}  // namespace

void plan_preload(const LaunchInputs& inputs, const Settings& settings, const WorkerProgram& program,
                  LaunchPlan& plan) {
  if (!settings.given(key::preload) || settings[key::preload].empty()) return;
  plan.preload = parse_modules(settings);
  const std::string& origin = settings.origin(key::preload);
  const std::string reason = obstacle(inputs.command_line.program.front(), program, plan);
  if (reason.empty()) return;
  if (origin.starts_with("--")) fail(origin, reason, "leave out the flag");
  plan.notes.push_back(fmt::format("preload ({}) has no effect: {}", origin, reason));
  plan.preload.clear();
}

bool is_preloaded(const LaunchPlan& plan, int rank) {
  return !plan.preload.empty() && wrap_of(plan, rank) == nullptr && plan.attach != rank;
}

PreloadEnvironment preload_environment(const LaunchPlan& plan) {
  // Two workers of two attempts that have nothing in common but the plan.
  const Round first_round = expected_round(plan);
  const Round second_round = {.machine_rank = first_round.machine_rank + 1,
                              .num_machines = first_round.num_machines + 1,
                              .first_rank = first_round.first_rank + 1,
                              .world_size = first_round.world_size + 1,
                              .first_role_rank = first_round.first_role_rank + 1,
                              .role_world_size = first_round.role_world_size + 1,
                              .master_addr = first_round.master_addr + ".other",
                              .master_port = static_cast<std::uint16_t>(first_round.master_port + 1),
                              .use_agent_store = first_round.use_agent_store};
  const Environment first = worker_environment(plan, 0, {.number = 0, .round = first_round, .folder = "/0"});
  const Environment last =
      worker_environment(plan, plan.nproc_per_node - 1, {.number = 1, .round = second_round, .folder = "/1"});
  PreloadEnvironment environment = {.shared = plan.inherited};
  for (const auto& [name, value] : first.variables()) {
    if (last.find(name) == value) {
      environment.shared.set(name, value);
    } else {
      environment.shared.erase(name);
      environment.per_worker.push_back(name);
    }
  }
  return environment;
}

}  // namespace acc::launcher
