// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/engine_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

bool in_file(const LaunchInputs& inputs, SettingId id) {
  const auto found = inputs.file.find(id);
  return found != inputs.file.end() && !found->second.value.is_null();
}

// Whether a flag, a variable or a named config file gives the setting.
bool is_given(const LaunchInputs& inputs, const Settings& settings, SettingId id) {
  return settings.is_explicit(id) || (!inputs.file_is_default && in_file(inputs, id));
}

class EngineQuestion {
 public:
  EngineQuestion(const LaunchInputs& inputs, Settings& settings, Engine& engine)
      : inputs_(inputs), settings_(settings), engine_(engine) {}

  /// Whether the engine's values apply; completes what the user has to give.
  bool applies() {
    if (engine_.problem) {
      if (!counted_by()) throw Error(ErrorKind::usage, {*engine_.problem});
      // Where the engine does not tell the rank, a user who gives the number of machines gives the rank, too.
      if (engine_.family != EngineFamily::kubernetes || !engine_.rank) return false;
      const MachineRange machines = decide_machines(settings_);
      engine_.size = engine_.num_nodes = {machines.max, settings_.origin(*counted_by())};
    }
    // RANK and WORLD_SIZE count workers where the number of machines that the user gives differs.
    if (engine_.is_convention && counted_by() && !agrees_on_machines()) return false;
    return engine_.has_others();
  }

  void check() const {
    check_machines();
    check_rank();
    if (engine_.several_per_node) check_processes();
  }

  std::vector<std::string> drop_default_file() {
    std::vector<std::string> dropped;
    for (const SettingId id : {SettingId(key::num_machines), SettingId(key::machine_rank),
                               SettingId(key::num_processes), SettingId(key::main_process_ip),
                               SettingId(key::main_process_port), SettingId(key::distributed_type)}) {
      if (!inputs_.file_is_default || !in_file(inputs_, id) || settings_.is_explicit(id)) continue;
      if (id == key::distributed_type && trains_on_devices()) continue;
      settings_.reset(id);
      dropped.emplace_back(row_of(id).name);
    }
    if (dropped.empty()) return {};
    return {fmt::format("{} of the default config file {} no effect: {} decides", join(dropped, ", "),
                        dropped.size() == 1 ? "has" : "have", engine_.name)};
  }

  void set_shape() {
    const bool tasks = engine_.several_per_node;
    if (tasks) settings_.set(key::nproc_per_node, "1", "one worker for each task, " + engine_.size->origin);
    if (tasks || !counted_by()) {
      settings_.set(key::num_machines, engine_.size->value, engine_.size->origin);
      if (settings_.given(key::nnodes))
        settings_.set(key::nnodes, fmt::to_string(engine_.size->value), engine_.size->origin);
    }
    if (tasks || !settings_.is_explicit(key::machine_rank))
      settings_.set(key::machine_rank, engine_.rank->value, engine_.rank->origin);
    if (engine_.run_id && !settings_.given(key::rdzv_id))
      settings_.set(key::rdzv_id, engine_.run_id->value, engine_.run_id->origin);
  }

  void set_address(std::vector<Problem>& problems) {
    if (settings_.given(key::rdzv_endpoint) || settings_[key::rdzv_backend] == "etcd") return;
    if (!settings_.given(key::main_process_ip)) {
      const EngineValue<std::string> address = address_of_first();
      if (address.value.empty()) fail_address();
      check_name(address, problems);
      settings_.set(key::main_process_ip, address.value, address.origin);
    }
    if (settings_.given(key::main_process_port)) return;
    const bool of_hosts = engine_.family == EngineFamily::hosts;
    const std::string text = inputs_.environment.get("MASTER_PORT");
    // A Service of Kubernetes that is called master: tcp://10.0.0.1:80.
    const bool of_service = text.find("://") != std::string::npos;
    if (!text.empty() && !of_service) {
      const auto port = parse_integer(text);
      if (!port) fail("MASTER_PORT", fmt::format("'{}' is not a port", text));
      settings_.set(key::main_process_port, *port, "MASTER_PORT");
    } else if (engine_.master_port) {
      settings_.set(key::main_process_port, engine_.master_port->value,
                    (of_hosts ? "" : "derived from ") + engine_.master_port->origin);
    }
  }

  /// The tasks of MPI tell each other what the environment does not: where rank 0 runs, which run this is,
  /// and to one that is alone on its node, whether all are.
  void exchange() {
    if (engine_.family != EngineFamily::mpi && engine_.family != EngineFamily::other) return;
    std::optional<int> num_nodes;
    if (!knows_address()) {
      num_nodes = ask_first();
    } else if (!engine_.several_per_node && has_worker_per_gpu()) {
      num_nodes = inputs_.count_task_nodes(inputs_.environment);
    }
    if (!num_nodes || *num_nodes >= engine_.size->value || engine_.several_per_node) return;
    engine_.several_per_node = true;
    engine_.num_nodes.reset();
    engine_.node_rank.reset();
    check_processes();
  }

  std::optional<TaskPosition> task(std::vector<std::string>& notes) {
    if (!engine_.several_per_node) return std::nullopt;
    TaskPosition task = {.local_rank = engine_.local_rank->value};
    task.local_size = engine_.local_size ? engine_.local_size->value : task.local_rank + 1;
    // Where the node is not told, each task counts as one, as with a torchrun in each.
    if (engine_.node_rank && engine_.num_nodes) {
      task.node_rank = engine_.node_rank->value;
      task.num_nodes = engine_.num_nodes->value;
    }
    if (task.local_size > 1 && sees_one_device(inputs_.environment) &&
        !settings_.given(key::virtual_local_rank)) {
      const std::string mask = "CUDA_VISIBLE_DEVICES=" + inputs_.environment.get("CUDA_VISIBLE_DEVICES");
      settings_.set(key::virtual_local_rank, true, mask);
      notes.push_back(mask + ": each task sees one device, LOCAL_RANK is 0");
    }
    return task;
  }

 private:
  bool trains_on_devices() const {
    const auto type = settings_[key::distributed_type];
    return type != DistributedType::no && type != DistributedType::multi_cpu;
  }

  bool knows_address() const {
    const Environment& environment = inputs_.environment;
    return settings_.given(key::rdzv_endpoint) || settings_[key::rdzv_backend] == "etcd" ||
           settings_.given(key::main_process_ip) ||
           (environment.contains("MASTER_ADDR") && environment.contains("MASTER_PORT")) ||
           (engine_.master_addr && engine_.run_id);
  }

  // Whether this process starts several workers if it is a node. One worker is the same as a task's, and may
  // want to speak to MPI itself: Hydra ends the conversation with the first that does.
  bool has_worker_per_gpu() const {
    return !is_given(key::nproc_per_node) && !is_given(key::num_processes) && !settings_[key::use_cpu] &&
           visible_gpus(inputs_.machine, inputs_.environment).size() > 1;
  }

  // Returns the number of nodes, if it is told.
  std::optional<int> ask_first() {
    const auto first = inputs_.exchange(inputs_.environment, engine_.rank->value, own_address());
    if (!first) return std::nullopt;
    const std::string origin = "rank 0 of " + engine_.name;
    if (!engine_.master_addr) engine_.master_addr = {first->text, origin};
    if (!engine_.run_id) set_run_id(engine_, first->job, origin);
    return first->num_nodes;
  }

  bool is_given(SettingId id) const { return launcher::is_given(inputs_, settings_, id); }

  // The setting with the number of machines, if it is given.
  std::optional<SettingId> counted_by() const {
    if (is_given(key::nnodes)) return key::nnodes;
    if (is_given(key::num_machines)) return key::num_machines;
    return std::nullopt;
  }

  [[noreturn]] void fail_contradiction(SettingId id, const EngineValue<int>& of_engine) const {
    fail("",
         fmt::format("{} ({} = {}) and {} ({}, {}) contradict each other", settings_.origin(id),
                     row_of(id).name, settings_.text(id), of_engine.origin, engine_.name, of_engine.value),
         fmt::format("drop {}; for jobs that do not know of each other --engine none", settings_.origin(id)));
  }

  bool agrees_on_machines() const {
    const MachineRange machines = decide_machines(settings_);
    const auto agrees = [&](const std::optional<EngineValue<int>>& count) {
      return count && machines.min <= count->value && count->value <= machines.max;
    };
    return agrees(engine_.size) || agrees(engine_.num_nodes);
  }

  void check_machines() const {
    if (counted_by() && !agrees_on_machines())
      fail_contradiction(*counted_by(), engine_.num_nodes ? *engine_.num_nodes : *engine_.size);
  }

  // Only a static rendezvous uses the given rank.
  void check_rank() const {
    if (!settings_.is_explicit(key::machine_rank) || settings_[key::rdzv_backend] != "static") return;
    if (engine_.family == EngineFamily::kubernetes || engine_.is_convention) return;
    const auto agrees = [&](const std::optional<EngineValue<int>>& rank) {
      return rank && rank->value == settings_[key::machine_rank];
    };
    if (!agrees(engine_.rank) && !agrees(engine_.node_rank))
      fail_contradiction(key::machine_rank, *engine_.rank);
  }

  // Each task is a worker; a number of workers must say the same.
  void check_processes() const {
    const std::string node = engine_.node.empty() ? "this machine" : engine_.node;
    const std::string way_out = engine_.family == EngineFamily::slurm ? "use --ntasks-per-node=1"
                                : engine_.family == EngineFamily::mpi ? "start one process per node"
                                                                      : "start one task per node";
    if (is_given(key::nproc_per_node)) {
      const std::string text(trim(settings_[key::nproc_per_node]));
      if (text == "1") return;
      const auto number = parse_integer(text);
      const int tasks = engine_.local_size ? engine_.local_size->value : engine_.size->value;
      fail("",
           fmt::format("{} started {} tasks on {} and {} {} was asked{}", engine_.name, tasks, node,
                       settings_.origin(key::nproc_per_node), text,
                       number ? fmt::format(": that is {} workers", *number * tasks) : ""),
           fmt::format("{}, or drop {}", way_out, settings_.origin(key::nproc_per_node)));
    }
    if (is_given(key::num_processes) &&
        settings_.text(key::num_processes) != fmt::to_string(engine_.size->value)) {
      fail("",
           fmt::format("{} started {} tasks ({}), each of which is a worker, and {} says {}", engine_.name,
                       engine_.size->value, engine_.size->origin, settings_.origin(key::num_processes),
                       settings_.text(key::num_processes)),
           fmt::format("{}, or drop {}", way_out, settings_.origin(key::num_processes)));
    }
  }

  // MASTER_ADDR was set for this job, or is left over from one that ran on this machine alone.
  EngineValue<std::string> address_of_first() const {
    const auto address = inputs_.environment.find("MASTER_ADDR");
    const bool one_machine = engine_.num_nodes && engine_.num_nodes->value == 1;
    if (address && !address->empty() && engine_.family != EngineFamily::hosts &&
        (one_machine || !names_loopback(*address)))
      return {*address, "MASTER_ADDR"};
    if (engine_.master_addr) return *engine_.master_addr;
    if (engine_.is_addressed_by_others) return {own_address(), "the main node of " + engine_.name};
    return pod_address();
  }

  // Where the other machines find this one: preferably what its name stands for.
  std::string own_address() const {
    const OwnNames names = inputs_.own_names();
    const std::string address = likely_address(names, inputs_.look_up(names.host_name).addresses);
    return address.empty() ? "127.0.0.1" : address;
  }

  // Slurm's name of a node need not be a host name. The name of a pod may come with the pod.
  void check_name(const EngineValue<std::string>& address, std::vector<Problem>& problems) const {
    if (engine_.family != EngineFamily::slurm) return;
    const HostLookup lookup = inputs_.look_up(address.value);
    if (!lookup.addresses.empty()) return;
    problems.push_back(
        {.what = fmt::format("cannot resolve '{}', the {}: {}", address.value, address.origin, lookup.error),
         .hint = "give --master-addr"});
  }

  EngineValue<std::string> pod_address() const {
    if (engine_.family != EngineFamily::kubernetes) return {};
    const std::string name = inputs_.full_host_name();
    return {first_pod(name), fmt::format("the first pod, as this one is {}", name)};
  }

  [[noreturn]] void fail_address() const {
    if (engine_.family == EngineFamily::kubernetes) {
      fail("",
           fmt::format("the address of the first pod is not known: this one, {}, has no domain",
                       inputs_.full_host_name()),
           "the Job needs a headless Service and its name as `subdomain`; or give --master-addr");
    }
    fail("",
         fmt::format("{} started {} tasks on several machines and does not tell the address of the first",
                     engine_.name, engine_.size->value),
         "give --master-addr, the name of the host of rank 0, or set MASTER_ADDR");
  }

  const LaunchInputs& inputs_;
  Settings& settings_;
  Engine& engine_;
};

// The word of --engine that asks this engine.
std::string_view choice_of(const Engine& engine) {
  switch (engine.family) {
    case EngineFamily::slurm:
      return "slurm";
    case EngineFamily::mpi:
      return "mpi";
    case EngineFamily::kubernetes:
      return "k8s";
    case EngineFamily::none:
    case EngineFamily::hosts:
    case EngineFamily::other:
      break;
  }
  return "auto";
}

// Whether nothing that was given makes this machine one of several.
bool is_alone(const Settings& settings) {
  return !settings.given(key::rdzv_endpoint) && decide_machines(settings).max == 1;
}

// A note on an engine whose variables name other nodes, but cannot start a job on them.
std::vector<std::string> note_on_nodes(const Environment& environment, const Settings& settings) {
  const std::string variables = is_alone(settings) ? other_nodes(environment) : "";
  if (variables.empty()) return {};
  return {
      fmt::format("{}: if other nodes run this command, each trains alone; --nnodes, --node-rank and "
                  "--master-addr make them one job",
                  variables)};
}

// Under torchrun's rules the number of machines is 1 unless it is given.
std::vector<std::string> note_on_copies(const Engine& engine, const Environment& environment,
                                        const Settings& settings) {
  if (!is_alone(settings)) return {};
  if (engine.problem) return {to_string(*engine.problem)};
  if (!engine.has_others()) return note_on_nodes(environment, settings);
  return {
      fmt::format("{} started {} copies of this command, and they do not know of each other: each trains "
                  "alone; `acc launch`, or --engine {}, makes them one job",
                  full_name(engine), engine.size->value, choice_of(engine))};
}

// Only the commands that start acc on the hosts may be given hosts.
void refuse_unused_hosts(const Settings& settings) {
  for (const SettingId id : {key::hosts, key::hostfile}) {
    if (!settings.given(id)) continue;
    throw Error({.kind = ErrorKind::usage,
                 .what = "works with acc launch and acc run only",
                 .where = settings.origin(id)});
  }
  for (const SettingId id : {SettingId(key::export_), SettingId(key::host_timeout)}) {
    if (!settings.given(id)) continue;
    throw Error(
        {.kind = ErrorKind::usage, .what = "needs --hosts or --hostfile", .where = settings.origin(id)});
  }
}

// The workers of this host. A number of workers that is given besides must say the same.
void take_slots(const LaunchInputs& inputs, Settings& settings) {
  const auto check = [&](SettingId id, const std::optional<EngineValue<int>>& slots) {
    if (!slots || !is_given(inputs, settings, id)) return;
    if (trim(settings.text(id)) == fmt::to_string(slots->value)) return;
    fail("",
         fmt::format("{} ({} = {}) and {} ({}) contradict each other", settings.origin(id), row_of(id).name,
                     settings.text(id), slots->origin, slots->value),
         fmt::format("drop {}", settings.origin(id)));
  };
  const HostAllocation& host = *inputs.host;
  check(key::nproc_per_node, host.slots);
  check(key::num_processes, host.all_slots);
  if (!host.slots) return;
  settings.set(key::nproc_per_node, fmt::to_string(host.slots->value), host.slots->origin);
  if (host.all_slots) settings.replace(key::num_processes, host.all_slots->value, host.all_slots->origin);
}

// Slurm's name of a node need not be its host name, but it stands for one of its addresses.
bool is_own_host(const LaunchInputs& inputs, const std::string& host) {
  const OwnNames names = inputs.own_names();
  const auto first_label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  if (first_label(names.host_name) == first_label(host)) return true;
  return std::ranges::any_of(inputs.look_up(host).addresses,
                             [&](const std::string& address) { return contains(names.addresses, address); });
}

// In the shell that salloc opens on a login node.
void check_host(const LaunchInputs& inputs, const Engine& engine) {
  if (engine.allocated_host.empty() || is_own_host(inputs, engine.allocated_host)) return;
  fail("",
       fmt::format("this is a shell on {} in the allocation of job {}, whose node is {}. acc would run here, "
                   "not there. "
                   "Write: srun --ntasks-per-node=1 acc launch …",
                   inputs.own_names().host_name, engine.job, engine.allocated_host),
       "or acc launch --srun …; to run here --engine none");
}

// With --gpu-bind=none Slurm does not hide the GPUs of other jobs.
void note_hidden_gpus(const LaunchInputs& inputs, EngineValues& values) {
  const auto& gpus = values.engine.gpus;
  if (!gpus || gpus->value == 0 || inputs.environment.contains("CUDA_VISIBLE_DEVICES") ||
      static_cast<std::size_t>(gpus->value) >= inputs.machine.gpus.size()) {
    values.engine.gpus.reset();
    return;
  }
  values.notes.push_back(fmt::format("{}={} but CUDA_VISIBLE_DEVICES is not set (--gpu-bind=none?): using {}",
                                     gpus->origin, gpus->value, gpus->value));
}

}  // namespace

EngineValues ask_engine(const LaunchInputs& inputs, Settings& settings) {
  EngineValues values;
  const std::string choice = settings[key::engine];
  if (inputs.host) {
    take_slots(inputs, settings);
  } else {
    refuse_unused_hosts(settings);
    if (settings[key::standalone] || choice == "none") return values;
  }
  Engine engine = inputs.host ? inputs.host->engine : find_engine(inputs.environment, choice);
  if (!engine) {
    values.notes = note_on_nodes(inputs.environment, settings);
    return values;
  }
  if (inputs.dialect == Dialect::torchrun && !settings.given(key::engine) && !inputs.host) {
    values.notes = note_on_copies(engine, inputs.environment, settings);
    return values;
  }
  check_host(inputs, engine);
  EngineQuestion question(inputs, settings, engine);
  if (question.applies()) {
    values.notes = question.drop_default_file();
    question.check();
    question.exchange();
    values.task = question.task(values.notes);
    question.set_address(values.problems);
    question.set_shape();
    values.engine = engine;
  } else {
    values.notes = note_on_nodes(inputs.environment, settings);
  }
  values.engine.gpus = engine.gpus;
  note_hidden_gpus(inputs, values);
  return values;
}

std::string engine_text(const Engine& engine, const LaunchPlan& plan) {
  if (!engine) return {};
  const std::string node = engine.node.empty() ? "" : ", " + engine.node;
  const std::string shape =
      plan.task ? fmt::format("{} tasks, one worker each; this is rank {} (local rank {}{})",
                              plan.num_machines, plan.machine_rank, plan.task->local_rank, node)
                : fmt::format("{} nodes; this is node {}{}, with {}", plan.num_machines, plan.machine_rank,
                              node, pluralize(plan.nproc_per_node, "worker"));
  const RendezvousPlan& rendezvous = plan.rendezvous;
  const std::string endpoint =
      rendezvous.endpoint_host.empty()
          ? ""
          : fmt::format("; they meet at {}:{}", rendezvous.endpoint_host, rendezvous.endpoint_port);
  return fmt::format("{}: {}{}", full_name(engine), shape, endpoint);
}

std::vector<std::string> srun_command(const Environment& environment, const std::string& acc,
                                      const std::vector<std::string>& words) {
  const Engine engine = find_engine(environment);
  if (engine.family != EngineFamily::slurm) {
    if (engine.has_others()) return {};
    throw Error({.what = "there is no Slurm allocation here: SLURM_JOB_ID is not set",
                 .where = "--srun",
                 .hint = "as in `sbatch -N2 job.sh` or `salloc -N2`"});
  }
  if (engine.rank) return {};
  const std::string nodes = environment.get("SLURM_JOB_NUM_NODES", "1");
  const std::string groups = slurm_groups(environment);
  // The task of a node uses all CPUs that the job has there. acc itself ends the job when a node fails, and
  // srun must not kill the others meanwhile.
  std::vector<std::string> command = {"srun"};
  if (groups.empty()) {
    command.insert(command.end(), {"--nodes=" + nodes, "--ntasks=" + nodes});
  } else {
    command.push_back(groups);
  }
  command.insert(command.end(), {"--ntasks-per-node=1", "--cpu-bind=none", "--kill-on-bad-exit=0", acc});
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace acc::launcher
