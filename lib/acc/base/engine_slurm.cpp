// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "acc/base/engine_readers.hpp"
#include "acc/base/host_list.hpp"

namespace acc::engines {
namespace {

// 1st, 2nd, 3rd, 11th.
std::string ordinal(std::size_t number) {
  const std::size_t tens = number % 100 / 10;
  constexpr std::array kEndings = {"th", "st", "nd", "rd"};
  return fmt::format("{}{}", number, tens == 1 || number % 10 > 3 ? "th" : kEndings.at(number % 10));
}

// The index of this node in the step's list of hosts, from 0.
std::optional<std::size_t> index_of(const std::string& node, const std::vector<std::string>& hosts) {
  const auto found = std::ranges::find(hosts, node);
  if (node.empty() || found == hosts.end()) return std::nullopt;
  return static_cast<std::size_t>(found - hosts.begin());
}

void read_slurm_run(const Environment& environment, Engine& engine) {
  const std::string restart = environment.get("SLURM_RESTART_COUNT", "0");
  std::string origin = "SLURM_JOB_ID and SLURM_STEP_ID";
  if (restart != "0") origin += " and SLURM_RESTART_COUNT";
  set_run_id(engine, fmt::format("{}.{}.{}", engine.job, environment.get("SLURM_STEP_ID"), restart), origin);
}

// With --distribution=arbitrary task 0 may be on any host of the sorted list: tasks are counted along the
// list instead, so that rank 0 is on its first host.
void count_slurm_tasks(const Environment& environment, Engine& engine) {
  constexpr std::string_view kTasks = "SLURM_STEP_TASKS_PER_NODE";
  const auto text = environment.find(kTasks);
  if (!text) return;
  const std::vector<int> tasks = expand_counts(*text, kTasks);
  const auto node = tasks.begin() + std::min<std::ptrdiff_t>(engine.node_rank->value, std::ssize(tasks));
  if (node == tasks.end() || engine.local_rank->value >= *node) {
    engine.problem = incomplete(engine, assignment(environment, kTasks), "this task in it");
    return;
  }
  engine.local_size = {*node, assignment(environment, kTasks)};
  if (!environment.get("SLURM_DISTRIBUTION").starts_with("arbitrary")) return;
  engine.rank = {std::accumulate(tasks.begin(), node, engine.local_rank->value),
                 fmt::format("SLURM_LOCALID={} on node {} of {}", engine.local_rank->value,
                             engine.node_rank->value, assignment(environment, kTasks))};
}

// Components of a heterogeneous job.
Number read_components(const Environment& environment) {
  constexpr std::string_view kName = "SLURM_HET_SIZE";
  constexpr int kMaxComponents = 128;  // Slurm's MAX_HET_JOB_COMPS
  const Number components = read_number(environment, kName, 1);
  if (components && components->value > kMaxComponents)
    refuse_value(kName, fmt::format("must be at most {}, not {}", kMaxComponents, components->value));
  return components;
}

// The nodes of the job. A heterogeneous one tells those of each component.
Number nodes_of_allocation(const Environment& environment) {
  const Number components = read_components(environment);
  if (!components || components->value == 1) return read_number(environment, "SLURM_JOB_NUM_NODES", 1);
  constexpr std::int64_t kMaxNodes = std::numeric_limits<int>::max();
  std::int64_t nodes = 0;
  for (int i = 0; i < components->value; ++i) {
    const Number own = read_number(environment, fmt::format("SLURM_JOB_NUM_NODES_HET_GROUP_{}", i), 1);
    nodes += own ? own->value : 1;
  }
  return EngineValue<int>{static_cast<int>(std::min(nodes, kMaxNodes)), components->origin};
}

}  // namespace

void read_slurm_step(const Environment& environment, Engine& engine) {
  constexpr std::string_view kList = "SLURM_STEP_NODELIST";
  engine.node = environment.get("SLURMD_NODENAME");
  engine.gpus = read_number(environment, "SLURM_GPUS_ON_NODE");
  engine.size = read_number(environment, "SLURM_STEP_NUM_TASKS", 1);
  engine.num_nodes = read_number(environment, "SLURM_STEP_NUM_NODES", 1);
  engine.rank = read_number(environment, "SLURM_PROCID");
  engine.local_rank = read_number(environment, "SLURM_LOCALID");
  read_slurm_run(environment, engine);
  const std::vector<std::string> hosts = expand_host_list(environment.get(kList), kList);
  const auto index = index_of(engine.node, hosts);
  engine.node_rank = index
                         ? EngineValue<int>{static_cast<int>(*index),
                                            fmt::format("SLURMD_NODENAME={}, {} of {}", shorten(engine.node),
                                                        ordinal(*index + 1), assignment(environment, kList))}
                         : read_number(environment, "SLURM_NODEID");
  if (!engine.size || !engine.num_nodes || !engine.local_rank || !engine.node_rank ||
      engine.node_rank->value >= engine.num_nodes->value || engine.rank->value >= engine.size->value) {
    engine.problem = incomplete(engine, assignment(environment, "SLURM_STEP_ID"),
                                "SLURM_STEP_NUM_TASKS, SLURM_STEP_NUM_NODES, SLURM_LOCALID and SLURM_NODEID");
    return;
  }
  engine.several_per_node = engine.size->value > engine.num_nodes->value;
  if (engine.several_per_node) {
    count_slurm_tasks(environment, engine);
  } else if (engine.local_rank->value > 0) {
    engine.problem =
        incomplete(engine, assignment(environment, "SLURM_LOCALID"), "more tasks than nodes in the step");
  } else {
    engine.local_size = {1, engine.size->origin};
    engine.rank = engine.node_rank;
    engine.size = engine.num_nodes;
  }
  if (!hosts.empty()) engine.master_addr = {hosts.front(), "first of " + assignment(environment, kList)};
}

// A batch script, or the shell of salloc: it runs on one node of the allocation, once.
void read_slurm_allocation(const Environment& environment, Engine& engine) {
  engine.node = environment.get("SLURMD_NODENAME");
  engine.num_nodes = nodes_of_allocation(environment);
  if (!engine.num_nodes || engine.num_nodes->value == 1) {
    constexpr std::string_view kList = "SLURM_JOB_NODELIST";
    const std::vector<std::string> hosts = expand_host_list(environment.get(kList), kList);
    if (engine.node.empty() && hosts.size() == 1) engine.allocated_host = hosts.front();
    return;
  }
  const std::string what =
      environment.contains("SLURM_PROCID")
          ? fmt::format("this is job {}'s batch script on {}", shorten(engine.job), shorten(engine.node))
          : fmt::format("this is a shell in the allocation of job {}", shorten(engine.job));
  const std::string group = slurm_groups(environment);
  engine.problem = {.what = fmt::format("{} ({} nodes, no step). Only this node would run. Write: srun {}"
                                        "--ntasks-per-node=1 acc launch …",
                                        what, engine.num_nodes->value, group.empty() ? "" : group + " "),
                    .hint = "or acc launch --srun …; for this node alone --engine none"};
}

}  // namespace acc::engines

namespace acc {

std::string slurm_groups(const Environment& environment) {
  const engines::Number components = engines::read_components(environment);
  if (!components || components->value == 1) return {};
  return fmt::format("--het-group=0-{}", components->value - 1);
}

}  // namespace acc
