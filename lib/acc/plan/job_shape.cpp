// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/job_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "acc/base/text.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/other_launchers.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/visible_devices.hpp"

namespace acc::launcher {
namespace {

[[noreturn]] void fail_contradiction(const Settings& settings, SettingId first, SettingId second) {
  const auto described = [&](SettingId id) {
    return fmt::format("{} ({} = {})", settings.origin(id), row_of(id).name, settings.text(id));
  };
  fail("", fmt::format("{} and {} contradict each other", described(first), described(second)),
       "give one of them");
}

int to_count(std::int64_t number, const std::string& where, std::string_view what) {
  if (number < 1 || number > std::numeric_limits<int>::max()) {
    fail(where, fmt::format("{} must be at least 1, not {}", what, number));
  }
  return static_cast<int>(number);
}

// Parses torchrun's N or MIN:MAX.
MachineRange parse_nnodes(const Settings& settings) {
  const std::string text = settings[key::nnodes];
  const std::string& where = settings.origin(key::nnodes);
  const std::vector<std::string> parts = split(text, ':');
  const auto min = parse_python_integer(parts.front());
  const auto max = parse_python_integer(parts.back());
  if (parts.size() > 2 || !min || !max || *min < 1 || *max < *min) {
    fail(where, "'" + text + "' is not a number of machines", "as in 2, or MIN:MAX as in 1:4");
  }
  return {.min = to_count(*min, where, "the number of machines"),
          .max = to_count(*max, where, "the number of machines")};
}

// A flag that chooses the distributed_type.
struct TypeFlag {
  SettingKey<bool> setting = {};
  /// Absent: the type follows from the number of processes.
  std::optional<DistributedType> type = {};
};

constexpr std::array kTypeFlags = {TypeFlag{key::use_cpu},
                                   TypeFlag{key::use_deepspeed, DistributedType::deepspeed},
                                   TypeFlag{key::use_fsdp, DistributedType::fsdp},
                                   TypeFlag{key::use_megatron_lm, DistributedType::megatron_lm},
                                   TypeFlag{key::multi_gpu, DistributedType::multi_gpu},
                                   TypeFlag{key::tpu, DistributedType::xla}};

// The flag that chose a type, or null. `--use_megatron_lm` may be combined with the other flags.
const TypeFlag* find_type_flag(const Settings& settings) {
  const TypeFlag* first = nullptr;
  const TypeFlag* conflict = nullptr;
  const TypeFlag* chosen = nullptr;
  for (const TypeFlag& flag : kTypeFlags) {
    if (!settings.is_explicit(flag.setting) || !settings[flag.setting]) continue;
    if (chosen == nullptr && flag.type) chosen = &flag;
    if (flag.setting == key::use_megatron_lm) continue;
    (first == nullptr ? first : conflict) = &flag;
  }
  if (conflict != nullptr) {
    fail("",
         fmt::format("{} and {} exclude each other", settings.origin(first->setting),
                     settings.origin(conflict->setting)),
         "give one of them");
  }
  return chosen;
}

// Only a static rendezvous uses the given rank; the others assign ranks, so an invalid one does no harm.
int decide_machine_rank(const Settings& settings, int num_machines) {
  const std::int64_t rank = settings[key::machine_rank];
  const bool below = rank >= 0 && rank < num_machines;
  if (!below && settings[key::rdzv_backend] == "static" && !settings[key::standalone]) {
    fail(settings.origin(key::machine_rank),
         fmt::format("machine rank {} is not below the number of machines, {}", rank, num_machines));
  }
  return below ? static_cast<int>(rank) : 0;
}

/// The kind of job that the user requested.
struct Request {
  /// The distributed_type, if one was requested.
  std::optional<DistributedType> type = {};
  /// The setting of the flag that requested it, if one did.
  std::optional<SettingId> flag = {};
  bool use_cpu = false;
  bool sagemaker = false;
};

Request read_request(const Settings& settings) {
  Request request;
  const bool cpu_flag = settings.is_explicit(key::use_cpu) && settings[key::use_cpu];
  const TypeFlag* chosen = find_type_flag(settings);
  if (!cpu_flag && chosen != nullptr) {
    request.type = chosen->type;
    request.flag = chosen->setting;
  } else if (!cpu_flag) {
    request.type = settings[key::distributed_type];
  }
  request.use_cpu = settings[key::use_cpu] || request.type == DistributedType::multi_cpu;
  request.sagemaker = settings[key::compute_environment] == ComputeEnvironment::amazon_sagemaker;
  return request;
}

int parse_workers(const Settings& settings, SettingId id, const LaunchInputs& inputs, int gpus) {
  const std::string text(trim(settings.text(id)));
  const std::string& where = settings.origin(id);
  if (const auto number = parse_python_integer(text))
    return to_count(*number, where, "the number of workers");
  if (text == "gpu" && gpus == 0)
    fail(where, "no GPU is visible on this machine", "`cpu` starts a worker per CPU");
  if (text == "gpu" || (text == "auto" && gpus > 0)) return gpus;
  if (text == "cpu" || text == "auto") return inputs.machine.allowed_cpus;
  fail(where, "'" + text + "' is not a number of workers", "a number, auto, gpu or cpu");
}

/// The number of workers, and num_processes as it follows from it.
struct Workers {
  int per_machine = 1;
  std::int64_t total = 1;
  std::string origin = {};
  std::string note = {};
};

// The kinds of training that need no device.
bool is_on_cpu(DistributedType type) {
  return type == DistributedType::no || type == DistributedType::multi_cpu;
}

// The output of a command that counts no GPUs, for example. Beside a config file accelerate refuses -1.
bool is_one_process(std::int64_t number, const LaunchInputs& inputs, const Request& request, int machines) {
  const bool starts_one = machines == 1 && (!request.type || is_on_cpu(*request.type));
  return inputs.none_is_one && starts_one && number < 1 && (number != -1 || inputs.file.empty());
}

// The number of workers if none is given: one per GPU, or a single one.
Workers default_workers(const Request& request, int machines, int gpus) {
  const bool single = request.type == DistributedType::no || request.use_cpu || request.sagemaker ||
                      (!request.type && gpus == 0);
  if (request.type == DistributedType::multi_cpu || (!single && gpus == 0)) {
    fail("num_processes", "is not given, and this machine has no GPUs to count", "give --num_processes");
  }
  const int per_machine = single ? 1 : gpus;
  const std::string origin = !single ? "machine: " + pluralize(static_cast<std::uint64_t>(gpus), "GPU")
                             : request.type == DistributedType::no && !request.use_cpu ? "distributed_type NO"
                                                                                       : "default";
  return {.per_machine = per_machine, .total = std::int64_t{machines} * per_machine, .origin = origin};
}

Workers decide_workers(const Settings& settings, const LaunchInputs& inputs, const Request& request,
                       int machines, int gpus) {
  if (settings.given(key::nproc_per_node)) {
    const int per_machine = parse_workers(settings, key::nproc_per_node, inputs, gpus);
    const std::int64_t total = std::int64_t{machines} * per_machine;
    if (settings.is_explicit(key::num_processes) &&
        settings.text(key::num_processes) != fmt::to_string(total))
      fail_contradiction(settings, key::nproc_per_node, key::num_processes);
    return {.per_machine = per_machine, .total = total, .origin = settings.origin(key::nproc_per_node)};
  }
  const auto num_processes = settings[key::num_processes];
  if (!num_processes) return default_workers(request, machines, gpus);
  const std::string& where = settings.origin(key::num_processes);
  // accelerate hands a word of a file on to torchrun, which counts the devices of its machine.
  if (const auto* word = std::get_if<std::string>(&*num_processes)) {
    if (machines > 1) {
      fail(where,
           fmt::format("num_processes {} counts on one machine, and these are {} ({})", *word, machines,
                       settings.origin(key::num_machines)),
           "give the number of processes on all machines");
    }
    const int workers = parse_workers(settings, key::num_processes, inputs, gpus);
    return {.per_machine = workers, .total = workers, .origin = fmt::format("{}: {}", where, *word)};
  }
  const auto number = std::get<std::int64_t>(*num_processes);
  if (is_one_process(number, inputs, request, machines)) {
    return {.origin = where,
            .note = fmt::format("{}: num_processes {} is one process, as under accelerate", where, number)};
  }
  const int total = to_count(number, where, "num_processes");
  if (total % machines != 0) {
    fail("",
         fmt::format("{} processes ({}) cannot be divided evenly among {} machines ({})", total, where,
                     machines, settings.origin(key::num_machines)),
         "give a multiple");
  }
  // Only flags are refused: accelerate accepts num_processes: 1 from the file.
  if (total == 1 && settings.is_explicit(key::multi_gpu) && settings.is_explicit(key::num_processes) &&
      request.type == DistributedType::multi_gpu) {
    fail("--multi_gpu", "needs at least 2 processes, but --num_processes is 1");
  }
  return {.per_machine = total / machines, .total = total, .origin = where};
}

bool is_explicit_count(const Settings& settings) {
  return settings.is_explicit(key::num_processes) || settings.is_explicit(key::nproc_per_node);
}

// Sets distributed_type and use_cpu for a job of one worker or `several`.
void decide_type(const Settings& settings, const Request& request, bool several, int gpus, JobShape& shape) {
  // A number of processes from a flag overrides the file's NO.
  const bool overridden = request.type == DistributedType::no && several && is_explicit_count(settings);
  shape.use_cpu = request.use_cpu;
  if (request.type && !overridden) {
    shape.distributed_type = *request.type;
    shape.use_cpu = request.use_cpu && is_on_cpu(*request.type);
  } else if (several) {
    // Without a GPU and without ACCELERATE_USE_CPU each worker would run as if it were alone, as under
    // accelerate 1.15.
    if (gpus == 0 && !request.use_cpu) {
      shape.use_cpu = true;
      shape.notes.emplace_back("no GPU is visible: the workers train on the CPU");
    }
    shape.distributed_type = shape.use_cpu ? DistributedType::multi_cpu : DistributedType::multi_gpu;
  }
}

Launcher decide_launcher(const Settings& settings, const Request& request, const JobShape& shape) {
  if (request.sagemaker) return Launcher::sagemaker;
  if (is_on_cpu(shape.distributed_type)) return Launcher::simple;
  if (shape.distributed_type == DistributedType::xla) {
    // accelerate reads tpu_use_cluster from the file only if the file also selects the TPU.
    const bool reads_cluster = settings.is_explicit(key::tpu_use_cluster) || !settings.is_explicit(key::tpu);
    return reads_cluster && settings[key::tpu_use_cluster] ? Launcher::tpu_pod : Launcher::tpu;
  }
  return uses_deepspeed_command(shape, settings) ? Launcher::deepspeed : Launcher::elastic;
}

bool decide_ranks(const Settings& settings, const JobShape& shape) {
  const bool alone = shape.nproc_per_node == 1 && shape.num_machines == 1;
  const bool torchrun_flags =
      settings.given(key::nproc_per_node) || settings.given(key::nnodes) || settings[key::standalone];
  return !shape.delegated && (shape.launcher != Launcher::simple || !alone || torchrun_flags);
}

void check_combinations(const Settings& settings, const Request& request, JobShape& shape) {
  if (request.sagemaker) {
    fail(settings.origin(key::compute_environment),
         "SageMaker jobs are not started by acc, nor by accelerate 1.15",
         "`aws sagemaker create-training-job` or SageMaker's Python SDK starts them");
  }
  if (settings[key::use_parallelism_config] && shape.distributed_type != DistributedType::fsdp)
    fail(settings.origin(key::use_parallelism_config), "works with FSDP only", "add --use_fsdp");
  if (settings.given(key::mpirun_hostfile) && !shape.delegated)
    shape.notes.emplace_back("mpirun_hostfile has no effect: only CPU jobs go through mpirun");
}

void check_devices(const Settings& settings, int gpus, JobShape& shape) {
  if (shape.delegated) return;
  const DistributedType type = shape.distributed_type;
  // Where there is one process, accelerate trains it on the CPU.
  const bool alone = shape.num_machines == 1 && shape.nproc_per_node == 1;
  if (gpus == 0 && alone) {
    if (!is_on_cpu(type))
      shape.notes.push_back(
          fmt::format("no GPU is visible: the one process of this {} job trains on the CPU", word_of(type)));
    return;
  }
  if (gpus == 0 && (type == DistributedType::fsdp || type == DistributedType::megatron_lm ||
                    type == DistributedType::deepspeed)) {
    shape.problems.push_back({.what = std::string(word_of(type)) + ", but no GPU is visible on this machine",
                              .where = settings.origin(key::distributed_type),
                              .hint = "without one, each worker would train alone"});
  }
  if (type != DistributedType::multi_gpu) return;
  const std::string ids = settings[key::gpu_ids];
  const bool named = selects_devices(ids);
  const int offered = named ? count_devices(ids, type, settings.origin(key::gpu_ids)) : gpus;
  if (named && offered < 2 && shape.num_machines == 1 && shape.nproc_per_node > 1) {
    fail(settings.origin(key::gpu_ids),
         fmt::format("gpu_ids names one GPU, and {} processes are to share it", shape.nproc_per_node),
         "name one per process, or `all`");
  }
  if (gpus == 0) {
    shape.problems.push_back({.what = "MULTI_GPU, but no GPU is visible on this machine",
                              .where = settings.origin(key::distributed_type),
                              .hint = "--cpu trains on the CPU"});
  } else if (offered < shape.nproc_per_node) {
    shape.notes.push_back(fmt::format("{} workers share {} GPUs", shape.nproc_per_node, offered));
  }
}

// Ranks are numbers of 32 bits, in PyTorch as well.
void check_world_size(int machines, int per_machine) {
  if (std::int64_t{machines} * per_machine <= std::numeric_limits<int>::max()) return;
  fail("", fmt::format("{} machines with {} workers each are more than {} ranks", machines, per_machine,
                       std::numeric_limits<int>::max()));
}

void record_derived(const JobShape& shape, Settings& settings) {
  if (settings[key::distributed_type] != shape.distributed_type)
    settings.set(key::distributed_type, shape.distributed_type, "derived from num_processes and devices");
  if (settings[key::use_cpu] != shape.use_cpu)
    settings.set(key::use_cpu, shape.use_cpu,
                 fmt::format("distributed_type {}", word_of(shape.distributed_type)));
}

}  // namespace

MachineRange decide_machines(const Settings& settings) {
  const int machines =
      to_count(settings[key::num_machines], settings.origin(key::num_machines), "num_machines");
  if (!settings.given(key::nnodes)) return {.min = machines, .max = machines};
  const MachineRange nnodes = parse_nnodes(settings);
  if (settings.is_explicit(key::num_machines) && nnodes.max != machines)
    fail_contradiction(settings, key::nnodes, key::num_machines);
  return nnodes;
}

JobShape decide_shape(const LaunchInputs& inputs, Settings& settings, std::optional<int> max_gpus) {
  const int visible = static_cast<int>(visible_gpus(inputs.machine, inputs.environment).size());
  const int gpus = std::min(visible, max_gpus.value_or(visible));
  const MachineRange machines = decide_machines(settings);
  if (settings.given(key::nnodes))
    settings.set(key::num_machines, machines.max, settings.origin(key::nnodes));
  JobShape shape = {.num_machines = machines.max,
                    .min_machines = machines.min,
                    .machine_rank = decide_machine_rank(settings, machines.max)};
  if (inputs.dialect == Dialect::torchrun) {
    shape.launcher = Launcher::torchrun;
    shape.nproc_per_node =
        settings.given(key::nproc_per_node) ? parse_workers(settings, key::nproc_per_node, inputs, gpus) : 1;
    check_world_size(shape.num_machines, shape.nproc_per_node);
    return shape;
  }
  const Request request = read_request(settings);
  if (request.flag) settings.set(key::distributed_type, request.type, settings.origin(*request.flag));
  const Workers workers = decide_workers(settings, inputs, request, machines.max, gpus);
  if (!workers.note.empty()) shape.notes.push_back(workers.note);
  settings.set(key::num_processes, workers.total, workers.origin);
  shape.nproc_per_node = workers.per_machine;
  check_world_size(machines.max, workers.per_machine);
  const bool several = std::int64_t{machines.max} * workers.per_machine > 1;
  // As under accelerate, a file with distributed_type NO starts one process, whatever number it contains.
  if (request.type == DistributedType::no && several && !is_explicit_count(settings)) {
    if (machines.max > 1) fail_contradiction(settings, key::distributed_type, key::num_machines);
    shape.notes.push_back(fmt::format("{}: distributed_type NO starts one process, not the {} of {}",
                                      settings.origin(key::distributed_type), workers.per_machine,
                                      workers.origin));
    shape.nproc_per_node = 1;
    settings.set(key::num_processes, 1, "distributed_type NO");
  }
  decide_type(settings, request, several, gpus, shape);
  shape.launcher = decide_launcher(settings, request, shape);
  shape.delegated = shape.launcher == Launcher::deepspeed || shape.distributed_type == DistributedType::xla ||
                    uses_mpi(shape, settings);
  shape.sets_ranks = decide_ranks(settings, shape);
  check_combinations(settings, request, shape);
  check_devices(settings, gpus, shape);
  record_derived(shape, settings);
  return shape;
}

}  // namespace acc::launcher
