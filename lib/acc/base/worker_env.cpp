// SPDX-License-Identifier: Apache-2.0
#include "acc/base/worker_env.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "acc/base/engine.hpp"
#include "acc/base/error.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

int read_in_range(const Environment& environment, std::string_view name, int default_value, int min,
                  int max) {
  const auto text = environment.find(name);
  if (!text) return default_value;
  const auto number = parse_integer(*text);
  if (!number || *number < min || *number > max) {
    throw Error({.what = fmt::format("must be a whole number of at least {}, not '{}'", min, shorten(*text)),
                 .where = std::string(name),
                 .hint = "the launcher sets it; start the program with `acc launch`"});
  }
  return static_cast<int>(*number);
}

void require_below(int rank, int size, std::string_view rank_name, std::string_view size_name) {
  if (rank < size) return;
  throw Error({.what = fmt::format("{} is not below {}={}", rank, size_name, size),
               .where = std::string(rank_name),
               .hint = "the launcher sets both; start the program with `acc launch`"});
}

constexpr std::string_view kWayOut =
    "start the program with `acc launch`; to train alone set ACC_ENGINE=none";

void read_address(const Environment& environment, const Engine& engine, WorkerEnv& worker) {
  if (const auto address = environment.find("MASTER_ADDR")) {
    worker.master_addr = *address;
  } else if (engine.master_addr) {
    worker.master_addr = engine.master_addr->value;
  } else if (engine.is_addressed_by_others) {
    worker.master_addr = own_names().host_name;
  } else {
    throw Error(
        {.what = fmt::format("{} started {} processes on several machines and does not tell the address of "
                             "rank 0",
                             engine.name, engine.size->value),
         .where = "MASTER_ADDR",
         .hint = "set it to the host of rank 0, or " + std::string(kWayOut)});
  }
  const int port = engine.master_port ? engine.master_port->value : worker.master_port;
  worker.master_port = static_cast<std::uint16_t>(read_in_range(environment, "MASTER_PORT", port, 1, 65535));
}

// The place of a program that an engine started beside others; nullopt: it is alone.
std::optional<WorkerEnv> read_engine(const Environment& environment) {
  const Engine engine = find_engine(environment, environment.get("ACC_ENGINE", "auto"));
  // In a batch script nothing was started beside this program.
  if (engine.problem && engine.rank)
    throw Error({.what = engine.problem->what, .hint = std::string(kWayOut)});
  if (engine.problem || !engine.has_others()) return std::nullopt;
  WorkerEnv worker;
  worker.rank = worker.role_rank = engine.rank->value;
  worker.world_size = worker.role_world_size = engine.size->value;
  worker.local_rank = sees_one_device(environment) ? 0 : engine.local_rank.value_or(EngineValue<int>{}).value;
  worker.local_world_size = engine.local_size.value_or(EngineValue<int>{1, {}}).value;
  const bool knows_node = engine.node_rank && engine.num_nodes;
  worker.group_rank = knows_node ? engine.node_rank->value : worker.rank;
  worker.group_world_size = knows_node ? engine.num_nodes->value : worker.world_size;
  if (engine.run_id) worker.run_id = engine.run_id->value;
  read_address(environment, engine, worker);
  return worker;
}

}  // namespace

Environment to_environment(const WorkerEnv& worker) {
  // In the order in which an environment keeps them, so that each is added at its end.
  return Environment{
      {"ACC_PROGRESS", worker.progress_file},
      {"GROUP_RANK", fmt::to_string(worker.group_rank)},
      {"GROUP_WORLD_SIZE", fmt::to_string(worker.group_world_size)},
      {"LOCAL_RANK", fmt::to_string(worker.local_rank)},
      {"LOCAL_WORLD_SIZE", fmt::to_string(worker.local_world_size)},
      {"MASTER_ADDR", worker.master_addr},
      {"MASTER_PORT", fmt::to_string(worker.master_port)},
      {"RANK", fmt::to_string(worker.rank)},
      {"ROLE_NAME", worker.role_name},
      {"ROLE_RANK", fmt::to_string(worker.role_rank)},
      {"ROLE_WORLD_SIZE", fmt::to_string(worker.role_world_size)},
      {"TORCHELASTIC_ERROR_FILE", worker.error_file},
      {"TORCHELASTIC_MAX_RESTARTS", fmt::to_string(worker.max_restarts)},
      {"TORCHELASTIC_RESTART_COUNT", fmt::to_string(worker.restart_count)},
      {"TORCHELASTIC_RUN_ID", worker.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", worker.use_agent_store ? "True" : "False"},
      {"WORLD_SIZE", fmt::to_string(worker.world_size)},
  };
}

WorkerEnv read_worker_env(const Environment& environment) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const auto number = [&](std::string_view name, int default_value, int min) {
    return read_in_range(environment, name, default_value, min, kMax);
  };
  if (environment.contains("RANK") != environment.contains("WORLD_SIZE")) {
    throw Error({.what = "is set alone: RANK and WORLD_SIZE belong together",
                 .where = environment.contains("RANK") ? "RANK" : "WORLD_SIZE",
                 .hint = "start the program with `acc launch`, or unset it"});
  }
  if (!environment.contains("RANK")) {
    if (const auto worker = read_engine(environment)) return *worker;
  }
  WorkerEnv worker;
  worker.rank = number("RANK", 0, 0);
  worker.world_size = number("WORLD_SIZE", 1, 1);
  worker.local_rank = number("LOCAL_RANK", worker.rank, 0);
  worker.local_world_size = number("LOCAL_WORLD_SIZE", worker.world_size, 1);
  worker.group_rank = number("GROUP_RANK", 0, 0);
  worker.group_world_size = number("GROUP_WORLD_SIZE", 1, 1);
  worker.role_name = environment.get("ROLE_NAME", worker.role_name);
  worker.role_rank = number("ROLE_RANK", worker.rank, 0);
  worker.role_world_size = number("ROLE_WORLD_SIZE", worker.world_size, 1);
  worker.master_addr = environment.get("MASTER_ADDR", worker.master_addr);
  worker.master_port =
      static_cast<std::uint16_t>(read_in_range(environment, "MASTER_PORT", worker.master_port, 1, 65535));
  worker.restart_count = number("TORCHELASTIC_RESTART_COUNT", 0, 0);
  worker.max_restarts = number("TORCHELASTIC_MAX_RESTARTS", 0, 0);
  worker.run_id = environment.get("TORCHELASTIC_RUN_ID", worker.run_id);
  // PyTorch compares with the exact text "True" in Python, and accepts these words in C++.
  const std::string agent_store = to_lower(environment.get("TORCHELASTIC_USE_AGENT_STORE"));
  worker.use_agent_store = agent_store == "true" || agent_store == "1" || agent_store == "t" ||
                           agent_store == "y" || agent_store == "yes";
  worker.error_file = environment.get("TORCHELASTIC_ERROR_FILE");
  worker.progress_file = environment.get("ACC_PROGRESS");
  require_below(worker.rank, worker.world_size, "RANK", "WORLD_SIZE");
  return worker;
}

}  // namespace acc
