// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

namespace acc {

/// A value that an engine gives, and the variables that say so: `SLURM_STEP_NUM_NODES`, or
/// `SLURMD_NODENAME=node2, 2nd of SLURM_STEP_NODELIST=node[1-2]`.
template <typename T>
struct EngineValue {
  T value = {};
  std::string origin = {};

  bool operator==(const EngineValue&) const = default;
};

/// The words of `--engine` and ACC_ENGINE.
enum class EngineFamily {
  none,
  slurm,
  mpi,
  kubernetes,
  /// acc itself, which starts one of its own on each host (`--hosts`); no variables tell of it.
  hosts,
  other,
};

/// What started this process, perhaps beside others on several nodes: Slurm's srun, an mpirun, a Kubernetes
/// Job, ... What it does not tell is absent. A task is a process that the engine started.
struct Engine {
  EngineFamily family = EngineFamily::none;
  /// `Slurm`, `Open MPI`, ...; empty: none was found.
  std::string name = {};
  /// The engine's own id of the job, without a name in front: `17`.
  std::string job = {};
  /// The task's place. With one task per node it is the node's place in the engine's list of hosts, so that
  /// rank 0 runs on the first host; otherwise the engine's own number.
  std::optional<EngineValue<int>> rank = {};
  /// The number of tasks.
  std::optional<EngineValue<int>> size = {};
  std::optional<EngineValue<int>> local_rank = {};
  std::optional<EngineValue<int>> local_size = {};
  std::optional<EngineValue<int>> node_rank = {};
  std::optional<EngineValue<int>> num_nodes = {};
  /// Some node has more than one task.
  bool several_per_node = false;
  /// The engine's name of this node, which may differ from the host name.
  std::string node = {};
  /// The host of a Slurm allocation of one, in a shell that may run elsewhere: that of salloc on a login
  /// node.
  std::string allocated_host = {};
  /// An address of the node of rank 0, and a port that all tasks derive alike.
  std::optional<EngineValue<std::string>> master_addr = {};
  std::optional<EngineValue<int>> master_port = {};
  /// The name of this run; it differs after a requeue.
  std::optional<EngineValue<std::string>> run_id = {};
  /// The GPUs that the engine assigned on this node.
  std::optional<EngineValue<int>> gpus = {};
  /// This process is rank 0, and only the others are told its address.
  bool is_addressed_by_others = false;
  /// The rank is that of PyTorch's RANK and WORLD_SIZE, which platforms fill with nodes, and scripts perhaps
  /// with workers: who counts the nodes himself is right.
  bool is_convention = false;
  /// Why the number of tasks, or the place of this one, is not known; a person must give them.
  std::optional<Problem> problem = {};

  explicit operator bool() const { return !name.empty(); }
  /// Whether the engine says that it started others beside this process.
  bool has_others() const { return size && size->value > 1; }

  bool operator==(const Engine&) const = default;
};

/// Gives the run its id, and a port that follows from it.
void set_run_id(Engine& engine, const std::string& id, const std::string& origin);

/// The engine of this process by its variables. When several left some, the innermost is meant: mpirun inside
/// a Slurm job. A worker of torchrun or acc has none: what it starts is a job of its own. `choice` is a word
/// of `--engine`: auto, slurm, mpi, k8s or none. Throws Error{usage} if the chosen engine is not there or a
/// value is malformed.
Engine find_engine(const Environment& environment, std::string_view choice = "auto");

/// Of a process that no engine started, or one that does not tell: variables by which a platform or a script
/// says that there are other nodes, as in `NNODES=2 and NODE_RANK=1` or `RANK=1 without WORLD_SIZE`. Empty if
/// there are none, and in a worker of some launcher.
std::string other_nodes(const Environment& environment);

/// srun's option for all components of a heterogeneous job; empty in other jobs.
std::string slurm_groups(const Environment& environment);

/// An engine with its job's id, for people: `Slurm (job 17)`, `Kubernetes`.
std::string full_name(const Engine& engine);

/// The full name of the engine or scheduler of this process; empty: none. Its other variables are not read.
std::string engine_name(const Environment& environment);

/// How an engine ends what it started.
struct EngineStop {
  /// `Slurm`, `Open MPI`, ...
  std::string engine = {};
  /// Between SIGTERM and SIGKILL, unless the site has changed it; absent: it sends no SIGKILL.
  std::optional<std::chrono::milliseconds> grace = {};
  /// What changes it, as in `KillWait of slurm.conf`.
  std::string setting = {};

  bool operator==(const EngineStop&) const = default;
};

/// How the engine or scheduler of this process ends it: it does so whether or not it is asked for counts and
/// ranks. Absent: none was found. Throws Error{usage} if Open MPI's grace is malformed.
std::optional<EngineStop> engine_stop(const Environment& environment);

/// Whether CUDA_VISIBLE_DEVICES names one device, as for a task of `srun --gpus-per-task=1`. Such a task has
/// LOCAL_RANK 0, whatever its place on the node.
bool sees_one_device(const Environment& environment);

/// The address of the first pod of an Indexed Job or JobSet: the full name of this pod's host with the last
/// number of its first label set to 0. Empty if that name has no domain, which pods without a headless
/// Service lack.
std::string first_pod(std::string_view full_host_name);

}  // namespace acc
