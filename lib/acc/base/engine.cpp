// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "acc/base/host_list.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

using Number = std::optional<EngineValue<int>>;

Number read_number(const Environment& environment, std::string_view name, int min = 0) {
  const auto text = name.empty() ? std::nullopt : environment.find(name);
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number || *number < min || *number > std::numeric_limits<int>::max()) {
    throw Error({.what = fmt::format("must be a whole number of at least {}, not '{}'", min, *text),
                 .where = std::string(name),
                 .hint = "the engine sets it; --engine none ignores it"});
  }
  return EngineValue<int>{static_cast<int>(*number), std::string(name)};
}

std::string assignment(const Environment& environment, std::string_view name) {
  return fmt::format("{}={}", name, environment.get(name));
}

// 1st, 2nd, 3rd, 11th.
std::string ordinal(std::size_t number) {
  const std::size_t tens = number % 100 / 10;
  constexpr std::array kEndings = {"th", "st", "nd", "rd"};
  return fmt::format("{}{}", number, tens == 1 || number % 10 > 3 ? "th" : kEndings.at(number % 10));
}

// FNV-1a: all nodes of a run find the same port, and two runs on one node rarely do.
int port_of(std::string_view run_id) {
  std::uint32_t hash = 2166136261U;
  for (const char c : run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return 20000 + static_cast<int>(hash % 10000);
}

Problem incomplete(const Engine& engine, const std::string& found, std::string_view missing) {
  return {.what = fmt::format("{} found, but not {}: the place of this process in the job of {} is not known",
                              found, missing, engine.name),
          .hint = "give --nnodes, --node-rank and --master-addr, or --engine none"};
}

/// The variables in which a launcher of tasks tells each its place; empty: it has none.
struct TaskVariables {
  std::string_view rank, size, local_rank, local_size, num_nodes, run_id;
};

constexpr TaskVariables kOpenMpi = {"OMPI_COMM_WORLD_RANK",       "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "OMPI_MCA_orte_num_nodes",    "PMIX_NAMESPACE"};
constexpr TaskVariables kHydra = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""};
constexpr TaskVariables kMvapich = {"MV2_COMM_WORLD_RANK",
                                    "MV2_COMM_WORLD_SIZE",
                                    "MV2_COMM_WORLD_LOCAL_RANK",
                                    "MV2_COMM_WORLD_LOCAL_SIZE",
                                    "",
                                    ""};
constexpr TaskVariables kFlux = {"FLUX_TASK_RANK",  "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "",
                                 "FLUX_JOB_NNODES", "FLUX_JOB_ID"};

void read_tasks(const Environment& environment, const TaskVariables& names, Engine& engine) {
  engine.rank = read_number(environment, names.rank);
  engine.size = read_number(environment, names.size, 1);
  engine.local_rank = read_number(environment, names.local_rank);
  engine.local_size = read_number(environment, names.local_size, 1);
  engine.num_nodes = read_number(environment, names.num_nodes, 1);
  if (const auto id = names.run_id.empty() ? std::nullopt : environment.find(names.run_id))
    set_run_id(engine, *id, std::string(names.run_id));
  if (!engine.size || !engine.local_rank || engine.rank->value >= engine.size->value) {
    engine.problem = incomplete(engine, assignment(environment, names.rank),
                                fmt::format("a {} above it with {}", names.size, names.local_rank));
    return;
  }
  const int size = engine.size->value;
  const int on_this_node = engine.local_size ? engine.local_size->value : engine.local_rank->value + 1;
  engine.several_per_node = on_this_node > 1 || (engine.num_nodes && size > engine.num_nodes->value);
  if (!engine.several_per_node) {
    engine.node_rank = engine.rank;
    engine.num_nodes = engine.size;
  }
  if (engine.local_size && engine.local_size->value == size)
    engine.master_addr = {"127.0.0.1", assignment(environment, names.local_size) + ": all on this machine"};
}

void read_open_mpi(const Environment& environment, Engine& engine) {
  read_tasks(environment, kOpenMpi, engine);
}

void read_hydra(const Environment& environment, Engine& engine) {
  read_tasks(environment, kHydra, engine);
}

void read_mvapich(const Environment& environment, Engine& engine) {
  read_tasks(environment, kMvapich, engine);
}

void read_flux(const Environment& environment, Engine& engine) {
  read_tasks(environment, kFlux, engine);
}

// The place of this node in the step's list of hosts, from 0.
std::optional<std::size_t> place_of(const std::string& node, const std::vector<std::string>& hosts) {
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
  const auto place = place_of(engine.node, hosts);
  engine.node_rank = place
                         ? EngineValue<int>{static_cast<int>(*place),
                                            fmt::format("SLURMD_NODENAME={}, {} of {}", engine.node,
                                                        ordinal(*place + 1), assignment(environment, kList))}
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
  engine.num_nodes = read_number(environment, "SLURM_JOB_NUM_NODES", 1);
  if (!engine.num_nodes || engine.num_nodes->value == 1) {
    constexpr std::string_view kList = "SLURM_JOB_NODELIST";
    const std::vector<std::string> hosts = expand_host_list(environment.get(kList), kList);
    if (engine.node.empty() && hosts.size() == 1) engine.allocated_host = hosts.front();
    return;
  }
  const std::string what = environment.contains("SLURM_PROCID")
                               ? fmt::format("this is job {}'s batch script on {}", engine.job, engine.node)
                               : fmt::format("this is a shell in the allocation of job {}", engine.job);
  engine.problem = {.what = fmt::format("{} ({} nodes, no step). Only this node would run. Write: srun "
                                        "--ntasks-per-node=1 acc launch …",
                                        what, engine.num_nodes->value),
                    .hint = "or acc launch --srun …; for this node alone --engine none"};
}

// Another implementation of PMI than those above: it does not tell which tasks share a node.
void read_pmi(const Environment& environment, Engine& engine) {
  engine.size = read_number(environment, "PMI_SIZE", 1);
  engine.rank = read_number(environment, "PMI_RANK");
  if (engine.has_others())
    engine.problem = incomplete(engine, assignment(environment, "PMI_SIZE"), "which processes share a node");
}

// PRRTE's prterun without Open MPI: the number of processes is known to PMIx alone.
void read_pmix(const Environment& environment, Engine& engine) {
  engine.rank = read_number(environment, "PMIX_RANK");
  engine.problem = incomplete(engine, assignment(environment, "PMIX_RANK"), "the number of processes");
}

void read_worker_set(const Environment& environment, Engine& engine) {
  engine.rank = engine.node_rank = read_number(environment, "LWS_WORKER_INDEX");
  engine.size = engine.num_nodes = read_number(environment, "LWS_GROUP_SIZE", 1);
  const std::string leader = environment.get("LWS_LEADER_ADDRESS");
  if (!engine.size || engine.rank->value >= engine.size->value)
    engine.problem =
        incomplete(engine, assignment(environment, "LWS_WORKER_INDEX"), "an LWS_GROUP_SIZE above it");
  if (!leader.empty()) engine.master_addr = {leader, "LWS_LEADER_ADDRESS"};
}

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

void read_indexed_job(const Environment& environment, Engine& engine) {
  constexpr std::string_view kIndex = "JOB_COMPLETION_INDEX";
  engine.rank = engine.node_rank = read_number(environment, kIndex);
  read_restart_of_job_set(environment, engine);
  engine.problem = {.what = fmt::format("{} found, the number of pods is not in the environment",
                                        assignment(environment, kIndex)),
                    .hint = "give --nnodes"};
}

// Kubeflow's PyTorchJob before it set torchrun's variables: WORLD_SIZE counts workers, RANK counts pods.
void read_pod(const Environment& environment, Engine& engine) {
  if (environment.contains("PET_NNODES") || !environment.contains("MASTER_ADDR")) return;
  const Number size = read_number(environment, "WORLD_SIZE", 1);
  if (!size || size->value == 1 || !environment.contains("RANK")) return;
  engine.problem = {
      .what = fmt::format("{} and {} found, the number of pods is not in the environment",
                          assignment(environment, "RANK"), assignment(environment, "WORLD_SIZE")),
      .hint = "give --nnodes and --node-rank"};
}

// A script of LSF runs on the first of its hosts; LSB_MCPU_HOSTS is `host slots host slots`.
void read_lsf(const Environment& environment, Engine& engine) {
  std::vector<std::string> words;
  for (const std::string& word : split(environment.get("LSB_MCPU_HOSTS"), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  const std::size_t hosts = words.size() / 2;
  if (hosts < 2) return;
  engine.problem = {.what = fmt::format("this is a script of LSF job {} ({} hosts in LSB_MCPU_HOSTS). Only "
                                        "this host would run. Write: mpirun -npernode 1 acc launch …",
                                        engine.job, hosts),
                    .hint = "for this host alone --engine none"};
}

/// How an engine is recognized, and how its variables are read.
struct EngineRow {
  std::string_view name;
  EngineFamily family;
  /// All of these variables are set; empty ones are ignored.
  std::array<std::string_view, 3> marks;
  /// Holds the job's id; empty: none does.
  std::string_view job = {};
  void (*read)(const Environment&, Engine&) = nullptr;
};

// The first match wins. What runs inside of something else comes before it: an mpirun inside a step of Slurm
// leaves the variables of that step to its tasks, and on some nodes not even those of the right step.
constexpr std::array kEngines = {
    EngineRow{"Open MPI", EngineFamily::mpi, {"OMPI_COMM_WORLD_RANK"}, "", read_open_mpi},
    EngineRow{"MPI (Hydra)", EngineFamily::mpi, {"PMI_RANK", "MPI_LOCALRANKID"}, "", read_hydra},
    EngineRow{"MVAPICH", EngineFamily::mpi, {"MV2_COMM_WORLD_RANK"}, "", read_mvapich},
    EngineRow{"Flux", EngineFamily::other, {"FLUX_JOB_ID", "FLUX_TASK_RANK"}, "FLUX_JOB_ID", read_flux},
    EngineRow{"PRRTE", EngineFamily::mpi, {"PMIX_RANK", "PMIX_NAMESPACE"}, "", read_pmix},
    EngineRow{"Slurm",
              EngineFamily::slurm,
              {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"},
              "SLURM_JOB_ID",
              read_slurm_step},
    EngineRow{"MPI (PMI)", EngineFamily::mpi, {"PMI_RANK", "PMI_SIZE"}, "", read_pmi},
    EngineRow{"LeaderWorkerSet", EngineFamily::kubernetes, {"LWS_WORKER_INDEX"}, "", read_worker_set},
    EngineRow{"Kubernetes Job",
              EngineFamily::kubernetes,
              {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"},
              "",
              read_indexed_job},
    EngineRow{"Slurm", EngineFamily::slurm, {"SLURM_JOB_ID"}, "SLURM_JOB_ID", read_slurm_allocation},
    EngineRow{"PBS", EngineFamily::other, {"PBS_JOBID"}, "PBS_JOBID"},
    EngineRow{"LSF", EngineFamily::other, {"LSB_JOBID"}, "LSB_JOBID", read_lsf},
    EngineRow{"Grid Engine", EngineFamily::other, {"SGE_TASK_ID"}},
    EngineRow{"Flux", EngineFamily::other, {"FLUX_JOB_ID"}, "FLUX_JOB_ID"},
    EngineRow{"SageMaker", EngineFamily::other, {"TRAINING_JOB_NAME"}, "TRAINING_JOB_NAME"},
    EngineRow{"Kubernetes", EngineFamily::kubernetes, {"KUBERNETES_SERVICE_HOST"}, "", read_pod},
};

// The shell that salloc opens on the first node is a step with this number (SLURM_INTERACTIVE_STEP of
// Slurm's slurm.h).
bool is_interactive_step(const Environment& environment) {
  return environment.get("SLURM_STEP_ID") == "4294967290";
}

// `srun --mpi=pmix` names its jobs so.
bool is_pmix_of_slurm(const Environment& environment) {
  return environment.get("PMIX_NAMESPACE").starts_with("slurm.");
}

bool matches(const EngineRow& row, const Environment& environment) {
  if (row.read == read_pmix && is_pmix_of_slurm(environment)) return false;
  if (row.read == read_slurm_step && is_interactive_step(environment)) return false;
  return std::ranges::all_of(
      row.marks, [&](std::string_view name) { return name.empty() || environment.contains(name); });
}

const EngineRow* find_row(const Environment& environment, std::optional<EngineFamily> family) {
  const auto* found = std::ranges::find_if(kEngines, [&](const EngineRow& row) {
    return (!family || row.family == *family) && matches(row, environment);
  });
  return found == kEngines.end() ? nullptr : found;
}

Engine named_by(const EngineRow& row, const Environment& environment) {
  Engine engine;
  engine.family = row.family;
  engine.name = row.name;
  if (!row.job.empty()) engine.job = environment.get(row.job);
  return engine;
}

std::optional<EngineFamily> family_of(std::string_view choice) {
  if (choice == "slurm") return EngineFamily::slurm;
  if (choice == "mpi") return EngineFamily::mpi;
  if (choice == "k8s") return EngineFamily::kubernetes;
  if (choice == "auto") return std::nullopt;
  throw Error({.what = fmt::format("'{}' is not an engine", choice),
               .where = "ACC_ENGINE",
               .hint = "auto, slurm, mpi, k8s or none"});
}

// The variables of which one shows that an engine of the family is there.
std::string marks_of(EngineFamily family) {
  std::vector<std::string> marks;
  for (const EngineRow& row : kEngines) {
    const std::string mark(row.marks.front());
    if (row.family == family && std::ranges::find(marks, mark) == marks.end()) marks.push_back(mark);
  }
  return join(marks, ", ");
}

}  // namespace

void set_run_id(Engine& engine, const std::string& id, const std::string& origin) {
  engine.run_id = {id, origin};
  engine.master_port = {port_of(id), origin};
}

Engine find_engine(const Environment& environment, std::string_view choice) {
  if (choice == "none") return {};
  const auto family = family_of(choice);
  // torchrun and acc are the innermost engine of their workers.
  if (!family && environment.contains("TORCHELASTIC_RUN_ID")) return {};
  const EngineRow* row = find_row(environment, family);
  if (row == nullptr && family) {
    throw Error({.what = fmt::format("no engine '{}' started this process: none of {} is set", choice,
                                     marks_of(*family)),
                 .hint = "drop --engine and ACC_ENGINE"});
  }
  if (row == nullptr) return {};
  Engine engine = named_by(*row, environment);
  if (row->read != nullptr) row->read(environment, engine);
  return engine;
}

std::string full_name(const Engine& engine) {
  return engine.job.empty() ? engine.name : fmt::format("{} (job {})", engine.name, engine.job);
}

std::string engine_name(const Environment& environment) {
  const EngineRow* row = find_row(environment, std::nullopt);
  return row == nullptr ? std::string() : full_name(named_by(*row, environment));
}

namespace {

struct StopRow {
  std::string_view engine;
  /// Seconds between SIGTERM and SIGKILL by default; negative: it sends no SIGKILL.
  int grace;
  std::string_view setting;
};

constexpr std::string_view kOpenMpiSetting = "odls_base_sigkill_timeout";
constexpr std::array kStops = {
    StopRow{"Open MPI", 1, kOpenMpiSetting},
    StopRow{"PRRTE", 1, kOpenMpiSetting},
    StopRow{"MPI (Hydra)", -1, ""},
    StopRow{"Slurm", 30, "KillWait of slurm.conf"},
    StopRow{"Flux", 5, "kill-timeout of flux-config-exec"},
    StopRow{"LSF", 10, "JOB_TERMINATE_INTERVAL of lsb.params"},
    StopRow{"PBS", 10, "kill_delay of the queue"},
};
constexpr StopRow kPodStop = {"", 30, "terminationGracePeriodSeconds of the pod"};

// Processes of mpirun see what it was given by --mca; PRRTE has a prefix of its own.
Number open_mpi_setting(const Environment& environment) {
  for (const std::string_view prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {
    if (Number seconds = read_number(environment, fmt::format("{}{}", prefix, kOpenMpiSetting)))
      return seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EngineStop> engine_stop(const Environment& environment) {
  const EngineRow* row = find_row(environment, std::nullopt);
  if (row == nullptr) return std::nullopt;
  EngineStop stop = {.engine = std::string(row->name)};
  const auto* found = std::ranges::find(kStops, row->name, &StopRow::engine);
  const bool is_pod = row->family == EngineFamily::kubernetes;
  if (found == kStops.end() && !is_pod) return stop;
  const StopRow& known = is_pod ? kPodStop : *found;
  stop.setting = known.setting;
  if (known.grace >= 0) stop.grace = std::chrono::seconds(known.grace);
  if (known.setting != kOpenMpiSetting) return stop;
  if (const Number given = open_mpi_setting(environment)) stop.grace = std::chrono::seconds(given->value);
  return stop;
}

bool sees_one_device(const Environment& environment) {
  const std::string mask = environment.get("CUDA_VISIBLE_DEVICES");
  return !mask.empty() && mask.find(',') == std::string::npos;
}

std::string first_pod(std::string_view full_host_name) {
  const std::size_t dot = full_host_name.find('.');
  const std::size_t dash = full_host_name.substr(0, dot).rfind('-');
  if (dot == std::string_view::npos || dash == std::string_view::npos) return {};
  return fmt::format("{}-0{}", full_host_name.substr(0, dash), full_host_name.substr(dot));
}

}  // namespace acc
