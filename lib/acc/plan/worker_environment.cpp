// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/worker_environment.hpp"

#include <fmt/format.h>

#include "acc/plan/line_template.hpp"

namespace acc::launcher {

Round expected_round(const LaunchPlan& plan) {
  const int world_size = plan.num_machines * plan.nproc_per_node;
  const int first_rank = plan.machine_rank * plan.nproc_per_node;
  return {.machine_rank = plan.machine_rank,
          .num_machines = plan.num_machines,
          .first_rank = first_rank,
          .world_size = world_size,
          .first_role_rank = first_rank,
          .role_world_size = world_size,
          .master_addr = plan.master_addr,
          .master_port = plan.master_port,
          .use_agent_store = plan.use_agent_store};
}

WorkerEnv worker_env_of(const LaunchPlan& plan, int local_rank, const Attempt& attempt) {
  const Round& round = attempt.round;
  WorkerEnv worker;
  worker.rank = round.first_rank + local_rank;
  worker.local_rank = plan.virtual_local_rank ? 0 : local_rank;
  worker.world_size = round.world_size;
  worker.local_world_size = plan.nproc_per_node;
  worker.group_rank = round.machine_rank;
  worker.group_world_size = round.num_machines;
  if (plan.task) {
    if (!plan.virtual_local_rank) worker.local_rank = plan.task->local_rank;
    worker.local_world_size = plan.task->local_size;
    worker.group_rank = plan.task->node_rank.value_or(round.machine_rank);
    worker.group_world_size = plan.task->num_nodes.value_or(round.num_machines);
  }
  worker.role_name = plan.role;
  worker.role_rank = round.first_role_rank + local_rank;
  worker.role_world_size = round.role_world_size;
  worker.master_addr = round.master_addr;
  worker.master_port = round.master_port;
  worker.restart_count = attempt.number;
  worker.max_restarts = plan.max_restarts;
  worker.run_id = plan.run_id;
  worker.use_agent_store = round.use_agent_store;
  if (!attempt.folder.empty())
    worker.error_file = fmt::format("{}/{}/error.json", attempt.folder, local_rank);
  if (!attempt.progress.empty()) worker.progress_file = attempt.progress + fmt::to_string(local_rank);
  return worker;
}

Environment worker_environment(const LaunchPlan& plan, int local_rank, const Attempt& attempt) {
  Environment environment = plan.environment;
  if (!plan.device_of_rank.empty()) {
    const std::string& device = plan.device_of_rank.at(static_cast<std::size_t>(local_rank));
    environment.set("CUDA_VISIBLE_DEVICES", device);
    if (plan.masks_hip) environment.set("HIP_VISIBLE_DEVICES", device);
  }
  if (!plan.sets_ranks) return environment;
  environment.overlay(to_environment(worker_env_of(plan, local_rank, attempt)));
  environment.set("TORCHELASTIC_SIGNALS_TO_HANDLE", plan.signals_to_handle);
  environment.set("TORCH_NCCL_ASYNC_ERROR_HANDLING",
                  plan.inherited.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"));
  if (!plan.timer_file.empty()) environment.set("TORCHELASTIC_TIMER_FILE", plan.timer_file.string());
  return environment;
}

std::vector<std::string> worker_command(const LaunchPlan& plan, int local_rank) {
  std::vector<std::string> command = plan.worker_command;
  // A single process without a rank gets its arguments as they are, as from accelerate.
  if (plan.delegated || !plan.sets_ranks) return command;
  const int rank = plan.task ? plan.task->local_rank : local_rank;
  const TemplateValues values = {{"local_rank", fmt::to_string(rank)}};
  for (std::size_t i = 1; i < command.size(); ++i)
    command[i] = substitute(command[i], values, Escape::references);
  return command;
}

std::string interpreter_text(const LaunchPlan& plan) {
  if (!plan.settings.given(key::python)) return {};
  return fmt::format("{} ({})", plan.settings[key::python], plan.settings.origin(key::python));
}

}  // namespace acc::launcher
