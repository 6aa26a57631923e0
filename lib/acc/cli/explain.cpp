// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "acc/base/text.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/watch.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kFreePort = "<free port>";

Environment shown_environment(const LaunchPlan& plan, int local_rank) {
  Attempt attempt{.number = 0, .round = expected_round(plan), .folder = {}, .progress = "<memory>/0-"};
  if (!plan.output.no_logs) attempt.folder = "<log folder>/attempt_0";
  Environment environment = worker_environment(plan, local_rank, attempt);
  if (plan.sets_ranks && plan.master_port == 0) environment.set("MASTER_PORT", std::string(kFreePort));
  if (plan.watch) environment.set("PYTHONPATH", watched_python_path(plan.inherited, "<memory>/watch"));
  if (plan.memory_checkpoints != 0) {
    environment.set("ACC_MEMORY_FOLDER", "<memory>/checkpoints");
    environment.set("ACC_MEMORY_SIZE", std::to_string(plan.memory_checkpoints));
  }
  return environment;
}

// The notes of the plan, with its problems.
std::vector<std::string> all_notes(const LaunchPlan& plan) {
  std::vector<std::string> notes = plan.notes;
  if (!plan.engine.empty()) notes.insert(notes.begin(), plan.engine);
  if (plan.launcher == Launcher::simple && !plan.delegated && plan.nproc_per_node > 1) {
    notes.push_back(
        fmt::format("accelerate launch starts one process where acc starts these {}", plan.nproc_per_node));
  }
  for (const Problem& problem : plan.problems)
    notes.push_back("cannot be started here: " + to_string(problem));
  return notes;
}

Environment common_environment(const LaunchPlan& plan) {
  Environment common = plan.environment;
  if (plan.launcher == Launcher::simple && plan.sets_ranks) {
    common.set("MASTER_ADDR", plan.master_addr);
    common.set("MASTER_PORT",
               plan.master_port == 0 ? std::string(kFreePort) : fmt::to_string(plan.master_port));
  }
  return common;
}

std::string value_text(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string wrapped_text(const LaunchPlan& plan) {
  std::string text;
  for (int local_rank = 0; local_rank < plan.nproc_per_node; ++local_rank) {
    const int rank = expected_round(plan).first_rank + local_rank;
    if (wrap_of(plan, rank) == nullptr) continue;
    text += fmt::format("\n\nrank {} runs:\n ", rank);
    for (const std::string& word : wrapped_command(plan, rank, local_rank)) text += " " + shell_word(word);
  }
  return text;
}

}  // namespace

std::string assumed_text(const LaunchPlan& plan) {
  const auto is_given = [&](SettingId id) {
    const std::string& origin = plan.settings.origin(id);
    const bool of_engine = !plan.engine.empty() && (id == key::num_processes || id == key::num_machines);
    return of_engine || origin.starts_with('-') || origin.starts_with("PET_");
  };
  std::vector<std::string> values;
  if (!is_given(key::num_processes))
    values.push_back(pluralize(plan.num_machines * plan.nproc_per_node, "process"));
  if (!is_given(key::num_machines)) values.push_back(pluralize(plan.num_machines, "machine"));
  if (!is_given(key::mixed_precision))
    values.push_back("mixed_precision " + plan.settings[key::mixed_precision]);
  // Who gives everything else knows that he starts on one machine.
  if (plan.num_machines == 1 && values == std::vector<std::string>{"1 machine"}) return {};
  return join(values, ", ");
}

Value explain_json(const LaunchPlan& plan) {
  Value settings = Value::object();
  for (const auto& [name, setting] : plan.settings.all()) {
    settings[std::string(name)] = {{"value", setting.value}, {"origin", setting.origin}};
  }
  const Environment common = common_environment(plan);
  Value workers = Value::array();
  for (int local_rank = 0; local_rank < plan.nproc_per_node; ++local_rank) {
    Value variables = Value::object();
    for (const auto& [name, value] : shown_environment(plan, local_rank).variables()) {
      if (common.find(name) != value) variables[name] = value;
    }
    const int rank = expected_round(plan).first_rank + local_rank;
    Value worker = {{"rank", rank}, {"local_rank", local_rank}, {"env", variables}};
    if (wrap_of(plan, rank) != nullptr) worker["command"] = wrapped_command(plan, rank, local_rank);
    if (plan.attach == rank) worker["terminal"] = true;
    if (!plan.cpus_of_rank.empty()) {
      const CpuBinding& binding = plan.cpus_of_rank.at(static_cast<std::size_t>(local_rank));
      worker["cpus"] = format_cpu_list(binding.cpus);
      worker["numa"] = binding.numa_nodes;
    }
    workers.push_back(std::move(worker));
  }
  return {{"schema", 1},
          {"launcher", word_of(plan.launcher)},
          {"settings", settings},
          {"worker_command", plan.worker_command},
          {"env", common.variables()},
          {"workers", workers},
          {"notes", all_notes(plan)}};
}

std::string explain_text(const LaunchPlan& plan) {
  const std::map<std::string_view, Setting> settings = plan.settings.all();
  std::size_t width = 0;
  std::size_t value_width = 0;
  for (const auto& [name, setting] : settings) {
    if (setting.origin == "default") continue;
    width = std::max(width, name.size());
    value_width = std::max(value_width, value_text(setting.value).size());
  }
  value_width = std::min<std::size_t>(value_width, 40);
  std::string text =
      fmt::format("{} of {}, launcher {}\n\nSettings that are not the default:\n",
                  pluralize(plan.nproc_per_node, "worker"),
                  plan.task ? pluralize(plan.num_machines, "task") : pluralize(plan.num_machines, "machine"),
                  word_of(plan.launcher));
  for (const auto& [name, setting] : settings) {
    if (setting.origin == "default") continue;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", name, width, value_text(setting.value), value_width,
                        setting.origin);
  }
  text += "\nEach worker runs:\n ";
  for (const std::string& word : plan.worker_command) text += " " + shell_word(word);
  text += wrapped_text(plan);
  text += "\n\nwith these variables added (worker 0):\n";
  for (const std::string& variable : shown_environment(plan, 0).to_strings()) text += "  " + variable + "\n";
  if (!plan.cpus_of_rank.empty()) text += "\nCPUs of the workers:\n";
  for (std::size_t i = 0; i < plan.cpus_of_rank.size(); ++i) {
    const CpuBinding& binding = plan.cpus_of_rank[i];
    text += fmt::format("  worker {}: {} (NUMA {})\n", i, format_cpu_list(binding.cpus),
                        fmt::join(binding.numa_nodes, ", "));
  }
  for (const std::string& note : all_notes(plan)) text += "\nnote: " + note + "\n";
  return text;
}

}  // namespace acc::launcher
