// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "acc/base/engine_readers.hpp"
#include "acc/base/text.hpp"

namespace acc::engines {
namespace {

// JobSet keeps the number in an annotation; manifests hand it to the container under this name. The port
// stays: each pod has an address of its own.
void read_restart_of_job_set(const Environment& environment, Engine& engine) {
  constexpr std::string_view kAttempt = "JOBSET_RESTART_ATTEMPT";
  const Number attempt = read_number(environment, kAttempt);
  if (!attempt) return;
  engine.run_id = {
      fmt::format("{}.{}", environment.get("JOBSET_NAME", "jobset"), attempt->value),
      environment.contains("JOBSET_NAME") ? "JOBSET_NAME and JOBSET_RESTART_ATTEMPT" : std::string(kAttempt)};
}

// The words between separators and blanks, without empty ones.
std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, separator)) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  return words;
}

// The rank of a node that its platform counts.
void set_node(Engine& engine, Number rank, Number size) {
  engine.rank = engine.node_rank = std::move(rank);
  engine.size = engine.num_nodes = std::move(size);
}

void require_rank(const Environment& environment, std::string_view rank, const std::string& size,
                  Engine& engine) {
  if (engine.rank && engine.size && engine.rank->value < engine.size->value) return;
  engine.problem = incomplete(engine, assignment(environment, rank), fmt::format("a {} above it", size));
}

// `["algo-1","algo-2"]`, in whatever order.
std::vector<std::string> sage_maker_hosts(const std::string& json) {
  std::vector<std::string> hosts;
  for (const std::string& word : words_of(json, ',')) {
    const std::size_t begin = word.find('"');
    const std::size_t end = word.rfind('"');
    if (begin != end) hosts.push_back(word.substr(begin + 1, end - begin - 1));
  }
  std::ranges::sort(hosts);
  return hosts;
}

// The name of the only variable VC_TASK_HOSTS, which Volcano sets for each task of a job; empty if there are
// several: which of them train together is not told.
std::string host_variable_of_volcano(const Environment& environment) {
  std::string host_variable;
  for (const std::string& variable : environment.to_strings()) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!name.starts_with("VC_") || !name.ends_with("_HOSTS")) continue;
    if (!host_variable.empty()) return {};
    host_variable = name;
  }
  return host_variable;
}

}  // namespace

void read_worker_set(const Environment& environment, Engine& engine) {
  engine.rank = engine.node_rank = read_number(environment, "LWS_WORKER_INDEX");
  engine.size = engine.num_nodes = read_number(environment, "LWS_GROUP_SIZE", 1);
  const std::string leader = environment.get("LWS_LEADER_ADDRESS");
  if (!engine.size || engine.rank->value >= engine.size->value)
    engine.problem =
        incomplete(engine, assignment(environment, "LWS_WORKER_INDEX"), "an LWS_GROUP_SIZE above it");
  if (!leader.empty()) engine.master_addr = {leader, "LWS_LEADER_ADDRESS"};
}

void read_indexed_job(const Environment& environment, Engine& engine) {
  constexpr std::string_view kIndex = "JOB_COMPLETION_INDEX";
  engine.rank = engine.node_rank = read_number(environment, kIndex);
  read_restart_of_job_set(environment, engine);
  engine.problem = {.what = fmt::format("{} found, the number of pods is not in the environment",
                                        assignment(environment, kIndex)),
                    .hint = "give --nnodes"};
}

// Its `svc` plug-in lists the pods of a task, and `env` tells each its index.
void read_volcano(const Environment& environment, Engine& engine) {
  const std::string list = host_variable_of_volcano(environment);
  const std::vector<std::string> hosts = words_of(environment.get(list), ',');
  if (hosts.empty()) return;
  set_node(engine, read_number(environment, "VC_TASK_INDEX"),
           EngineValue<int>{static_cast<int>(hosts.size()), list});
  require_rank(environment, "VC_TASK_INDEX", "host in " + list, engine);
  engine.master_addr = {hosts.front(), "first of " + list};
}

void read_sky_pilot(const Environment& environment, Engine& engine) {
  constexpr std::string_view kAddresses = "SKYPILOT_NODE_IPS";
  const std::vector<std::string> addresses = words_of(environment.get(kAddresses), '\n');
  Number size = read_number(environment, "SKYPILOT_NUM_NODES", 1);
  if (!size && !addresses.empty())
    size = {static_cast<int>(addresses.size()), "lines of " + std::string(kAddresses)};
  set_node(engine, read_number(environment, "SKYPILOT_NODE_RANK"), size);
  require_rank(environment, "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES", engine);
  if (!addresses.empty()) engine.master_addr = {addresses.front(), "first of " + std::string(kAddresses)};
  if (const auto task = environment.find("SKYPILOT_TASK_ID")) set_run_id(engine, *task, "SKYPILOT_TASK_ID");
}

// The variables of the SageMaker Training Toolkit, which also calls the first host of the sorted list master.
void read_sage_maker(const Environment& environment, Engine& engine) {
  const std::vector<std::string> hosts = sage_maker_hosts(environment.get("SM_HOSTS"));
  const auto self = std::ranges::find(hosts, environment.get("SM_CURRENT_HOST"));
  if (self == hosts.end()) {
    engine.problem = incomplete(engine, assignment(environment, "SM_CURRENT_HOST"), "an SM_HOSTS with it");
    return;
  }
  set_node(engine, EngineValue<int>{static_cast<int>(self - hosts.begin()), "SM_CURRENT_HOST among SM_HOSTS"},
           EngineValue<int>{static_cast<int>(hosts.size()), "SM_HOSTS"});
  engine.master_addr = {hosts.front(), "first of SM_HOSTS"};
  if (!engine.job.empty()) set_run_id(engine, engine.job, "TRAINING_JOB_NAME");
}

// A multi-node parallel job. The id of each node's part is JOB#INDEX, and the address of the main node is
// told to the others alone.
void read_aws_batch(const Environment& environment, Engine& engine) {
  constexpr std::string_view kIndex = "AWS_BATCH_JOB_NODE_INDEX";
  constexpr std::string_view kAddress = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
  engine.job = engine.job.substr(0, engine.job.find('#'));
  const Number size = read_number(environment, "AWS_BATCH_JOB_NUM_NODES", 1);
  const Number main = read_number(environment, "AWS_BATCH_JOB_MAIN_NODE_INDEX");
  set_node(engine, read_number(environment, kIndex), size);
  require_rank(environment, kIndex, "AWS_BATCH_JOB_NUM_NODES", engine);
  if (engine.problem) return;
  if (main && main->value > 0) {
    engine.rank =
        engine.node_rank = {(engine.rank->value - main->value % size->value + size->value) % size->value,
                            fmt::format("{} counted from {}", kIndex, assignment(environment, main->origin))};
  }
  engine.is_addressed_by_others = engine.rank->value == 0;
  if (const auto address = environment.find(kAddress)) engine.master_addr = {*address, std::string(kAddress)};
  if (!engine.job.empty())
    set_run_id(engine, fmt::format("{}.{}", engine.job, environment.get("AWS_BATCH_JOB_ATTEMPT", "1")),
               "AWS_BATCH_JOB_ID and AWS_BATCH_JOB_ATTEMPT");
}

// PyTorch's own variables, for nodes: Kubeflow's PyTorchJob before it had torchrun's, Volcano's plug-in
// `pytorch`, and platforms that follow them.
void read_pytorch_variables(const Environment& environment, Engine& engine) {
  set_node(engine, read_number(environment, "RANK"), read_number(environment, "WORLD_SIZE", 1));
  engine.is_convention = true;
  require_rank(environment, "RANK", "WORLD_SIZE", engine);
  engine.master_addr = {environment.get("MASTER_ADDR"), "MASTER_ADDR"};
}

}  // namespace acc::engines
