// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"

namespace acc {

/// A worker's place in the job: the contract between launcher and runtime, in the variables of torchrun 2.11
/// (RANK, WORLD_SIZE, MASTER_ADDR, ...), so that either side may be PyTorch's.
struct WorkerEnv {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int group_rank = 0;
  int group_world_size = 1;
  std::string role_name = "default";
  int role_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;
  int restart_count = 0;
  int max_restarts = 0;
  std::string run_id = "none";
  /// The launcher already serves a store at master_addr:master_port; every rank connects as a client.
  bool use_agent_store = false;
  /// Where the worker writes the JSON that explains its failure; empty: nowhere.
  std::string error_file = {};
  /// Where the worker says how far it is (progress_page.hpp); empty: nowhere.
  std::string progress_file = {};

  bool operator==(const WorkerEnv&) const = default;
};

/// Part of keys in the launcher's store that announce an end, as of processes that others wait for: when the
/// connection that has set `a/acc/at_end/b` ends, the store sets `a/b` to the same value, unless it is set.
/// Other stores keep it as any other key.
inline constexpr std::string_view kAtEnd = "acc/at_end/";

/// The variables of `worker`, named as in torchrun.
Environment to_environment(const WorkerEnv& worker);

/// Reads the variables that a launcher has set, else those of the engine that started the program beside
/// others (engine.hpp); without either, the program is a job of one process. Throws Error{usage} naming the
/// variable if a value is malformed, if only one of RANK and WORLD_SIZE is set, if a rank is not below its
/// size, or if there are others whose place is not known.
WorkerEnv read_worker_env(const Environment& environment);

}  // namespace acc
