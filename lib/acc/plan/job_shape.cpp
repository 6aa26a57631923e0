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

namespace acc::launcher {
namespace {

[[noreturn]] void fail_contradiction(const Settings& settings, std::string_view one, std::string_view other) {
  fail("",
       fmt::format("{} ({} = {}) and {} ({} = {}) contradict each other", settings.origin(one), one,
                   settings.text(one), settings.origin(other), other, settings.text(other)),
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
  const std::string text = settings.text("nnodes");
  const std::string& where = settings.origin("nnodes");
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
struct Choice {
  std::string_view setting = {};
  std::string_view type = {};
};

// The type that a flag chose; empty if none did. `--use_megatron_lm` may be combined with the other flags.
Choice chosen_type(const Settings& settings) {
  constexpr std::array kChoices = {Choice{"use_cpu", ""},
                                   Choice{"use_deepspeed", "DEEPSPEED"},
                                   Choice{"use_fsdp", "FSDP"},
                                   Choice{"use_megatron_lm", "MEGATRON_LM"},
                                   Choice{"multi_gpu", "MULTI_GPU"},
                                   Choice{"tpu", "XLA"}};
  const Choice* first = nullptr;
  const Choice* other = nullptr;
  Choice chosen;
  for (const Choice& choice : kChoices) {
    if (!settings.is_explicit(choice.setting) || !settings.truth(choice.setting)) continue;
    if (chosen.type.empty()) chosen = choice;
    if (choice.setting == "use_megatron_lm") continue;
    (first == nullptr ? first : other) = &choice;
  }
  if (other != nullptr) {
    fail("",
         fmt::format("{} and {} exclude each other", settings.origin(first->setting),
                     settings.origin(other->setting)),
         "give one of them");
  }
  return chosen;
}

// Only a static rendezvous uses the given rank; the others assign ranks, so an invalid one does no harm.
int decide_machine_rank(const Settings& settings, int num_machines) {
  const std::int64_t rank = settings.integer("machine_rank");
  const bool below = rank >= 0 && rank < num_machines;
  if (!below && settings.text("rdzv_backend") == "static" && !settings.truth("standalone")) {
    fail(settings.origin("machine_rank"),
         fmt::format("machine rank {} is not below the number of machines, {}", rank, num_machines));
  }
  return below ? static_cast<int>(rank) : 0;
}

/// The kind of job that the user requested.
struct Request {
  /// The distributed_type; empty: none was requested.
  std::string type = {};
  /// The setting of the flag that requested it; empty: no flag did.
  std::string_view flag = {};
  bool use_cpu = false;
  bool sagemaker = false;
};

Request read_request(const Settings& settings) {
  Request request;
  const bool cpu_flag = settings.is_explicit("use_cpu") && settings.truth("use_cpu");
  const Choice chosen = chosen_type(settings);
  if (!cpu_flag && !chosen.type.empty()) {
    request.type = chosen.type;
    request.flag = chosen.setting;
  } else if (!cpu_flag && settings.given("distributed_type")) {
    request.type = settings.text("distributed_type");
  }
  request.use_cpu = settings.truth("use_cpu") || request.type == "MULTI_CPU";
  request.sagemaker = settings.text("compute_environment") == "AMAZON_SAGEMAKER";
  return request;
}

int parse_workers(const Settings& settings, std::string_view name, const LaunchInputs& inputs, int gpus) {
  const std::string text(trim(settings.text(name)));
  const std::string& where = settings.origin(name);
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
  Setting total = {};
};

// Without a given number: one worker per GPU, or one.
Workers default_workers(const Request& request, int machines, int gpus) {
  const bool one =
      request.type == "NO" || request.use_cpu || request.sagemaker || (request.type.empty() && gpus == 0);
  if (request.type == "MULTI_CPU" || (!one && gpus == 0)) {
    fail("num_processes", "is not given, and this machine has no GPUs to count", "give --num_processes");
  }
  const int per_machine = one ? 1 : gpus;
  const std::string origin = !one ? fmt::format("machine: {} GPUs", gpus)
                             : request.type == "NO" && !request.use_cpu ? "distributed_type NO"
                                                                        : "default";
  return {.per_machine = per_machine, .total = {std::int64_t{machines} * per_machine, origin}};
}

Workers decide_workers(const Settings& settings, const LaunchInputs& inputs, const Request& request,
                       int machines, int gpus) {
  if (settings.given("nproc_per_node")) {
    const int per_machine = parse_workers(settings, "nproc_per_node", inputs, gpus);
    const std::int64_t total = std::int64_t{machines} * per_machine;
    if (settings.is_explicit("num_processes") && settings.text("num_processes") != fmt::to_string(total))
      fail_contradiction(settings, "nproc_per_node", "num_processes");
    return {.per_machine = per_machine, .total = {total, settings.origin("nproc_per_node")}};
  }
  if (!settings.given("num_processes")) return default_workers(request, machines, gpus);
  const std::string& where = settings.origin("num_processes");
  // accelerate hands a word of a file on to torchrun, which counts the devices of its machine.
  if (settings["num_processes"].value.is_string()) {
    const std::string word = settings.text("num_processes");
    if (machines > 1) {
      fail(where,
           fmt::format("num_processes {} counts on one machine, and these are {} ({})", word, machines,
                       settings.origin("num_machines")),
           "give the number of processes on all machines");
    }
    const int workers = parse_workers(settings, "num_processes", inputs, gpus);
    return {.per_machine = workers, .total = {workers, fmt::format("{}: {}", where, word)}};
  }
  const int total = to_count(settings.integer("num_processes"), where, "num_processes");
  if (total % machines != 0) {
    fail("",
         fmt::format("{} processes ({}) cannot be divided evenly among {} machines ({})", total, where,
                     machines, settings.origin("num_machines")),
         "give a multiple");
  }
  // Only flags are refused: accelerate accepts num_processes: 1 from the file.
  if (total == 1 && settings.is_explicit("multi_gpu") && settings.is_explicit("num_processes") &&
      request.type == "MULTI_GPU") {
    fail("--multi_gpu", "needs at least 2 processes, but --num_processes is 1");
  }
  return {.per_machine = total / machines, .total = settings["num_processes"]};
}

bool is_explicit_count(const Settings& settings) {
  return settings.is_explicit("num_processes") || settings.is_explicit("nproc_per_node");
}

// Sets distributed_type and use_cpu for a job of one worker or `several`.
void decide_type(const Settings& settings, const Request& request, bool several, int gpus, JobShape& shape) {
  // A number of processes from a flag overrides the file's NO.
  const bool overridden = request.type == "NO" && several && is_explicit_count(settings);
  shape.use_cpu = request.use_cpu;
  if (!request.type.empty() && !overridden) {
    shape.distributed_type = request.type;
    shape.use_cpu = request.use_cpu && (request.type == "MULTI_CPU" || request.type == "NO");
  } else if (several) {
    // Without a GPU and without ACCELERATE_USE_CPU each worker would run as if it were alone, as under
    // accelerate 1.15.
    if (gpus == 0 && !request.use_cpu) {
      shape.use_cpu = true;
      shape.notes.emplace_back("no GPU is visible: the workers train on the CPU");
    }
    shape.distributed_type = shape.use_cpu ? "MULTI_CPU" : "MULTI_GPU";
  }
}

std::string decide_launcher(const Settings& settings, const Request& request, const JobShape& shape) {
  const std::string& type = shape.distributed_type;
  if (request.sagemaker) return "sagemaker";
  if (type == "NO" || type == "MULTI_CPU") return "simple";
  if (type == "XLA") {
    // accelerate reads tpu_use_cluster from the file only if the file also selects the TPU.
    const bool reads_cluster = settings.is_explicit("tpu_use_cluster") || !settings.is_explicit("tpu");
    return reads_cluster && settings.truth("tpu_use_cluster") ? "tpu-pod" : "tpu";
  }
  return uses_deepspeed_command(shape, settings) ? "deepspeed" : "elastic";
}

bool decide_ranks(const Settings& settings, const JobShape& shape) {
  const bool alone = shape.nproc_per_node == 1 && shape.num_machines == 1;
  const bool torchrun_flags =
      settings.given("nproc_per_node") || settings.given("nnodes") || settings.truth("standalone");
  return !shape.delegated && (shape.launcher != "simple" || !alone || torchrun_flags);
}

void check_combinations(const Settings& settings, const Request& request, JobShape& shape) {
  if (request.sagemaker) {
    fail(settings.origin("compute_environment"),
         "SageMaker jobs are not started by acc, nor by accelerate 1.15",
         "`aws sagemaker create-training-job` or SageMaker's Python SDK starts them");
  }
  if (settings.truth("use_parallelism_config") && shape.distributed_type != "FSDP")
    fail(settings.origin("use_parallelism_config"), "works with FSDP only", "add --use_fsdp");
  if (settings.given("mpirun_hostfile") && !shape.delegated)
    shape.notes.emplace_back("mpirun_hostfile has no effect: only CPU jobs go through mpirun");
}

void check_devices(const Settings& settings, int gpus, JobShape& shape) {
  if (shape.delegated) return;
  const std::string& type = shape.distributed_type;
  // Where there is one process, accelerate trains it on the CPU.
  const bool alone = shape.num_machines == 1 && shape.nproc_per_node == 1;
  if (gpus == 0 && alone) {
    if (type != "NO" && type != "MULTI_CPU")
      shape.notes.push_back(
          fmt::format("no GPU is visible: the one process of this {} job trains on the CPU", type));
    return;
  }
  if (gpus == 0 && (type == "FSDP" || type == "MEGATRON_LM" || type == "DEEPSPEED")) {
    shape.problems.push_back({.what = type + ", but no GPU is visible on this machine",
                              .where = settings.origin("distributed_type"),
                              .hint = "without one, each worker would train alone"});
  }
  if (type != "MULTI_GPU") return;
  const std::string ids = settings.text("gpu_ids");
  const bool named = !ids.empty() && ids != "all";
  const int offered = named ? static_cast<int>(split(ids, ',').size()) : gpus;
  if (named && offered < 2 && shape.num_machines == 1 && shape.nproc_per_node > 1) {
    fail(settings.origin("gpu_ids"),
         fmt::format("gpu_ids names one GPU, and {} processes are to share it", shape.nproc_per_node),
         "name one per process, or `all`");
  }
  if (gpus == 0) {
    shape.problems.push_back({.what = "MULTI_GPU, but no GPU is visible on this machine",
                              .where = settings.origin("distributed_type"),
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
  if (settings.text("distributed_type") != shape.distributed_type)
    settings.set("distributed_type", shape.distributed_type, "derived from num_processes and devices");
  if (settings.truth("use_cpu") != shape.use_cpu)
    settings.set("use_cpu", shape.use_cpu, "distributed_type " + shape.distributed_type);
}

}  // namespace

MachineRange decide_machines(const Settings& settings) {
  const int machines =
      to_count(settings.integer("num_machines"), settings.origin("num_machines"), "num_machines");
  if (!settings.given("nnodes")) return {.min = machines, .max = machines};
  const MachineRange nnodes = parse_nnodes(settings);
  if (settings.is_explicit("num_machines") && nnodes.max != machines)
    fail_contradiction(settings, "nnodes", "num_machines");
  return nnodes;
}

JobShape decide_shape(const LaunchInputs& inputs, Settings& settings, std::optional<int> max_gpus) {
  const int visible = static_cast<int>(visible_gpus(inputs.machine, inputs.environment).size());
  const int gpus = std::min(visible, max_gpus.value_or(visible));
  const MachineRange machines = decide_machines(settings);
  if (settings.given("nnodes")) settings.set("num_machines", machines.max, settings.origin("nnodes"));
  JobShape shape = {.num_machines = machines.max,
                    .min_machines = machines.min,
                    .machine_rank = decide_machine_rank(settings, machines.max)};
  if (inputs.dialect == Dialect::torchrun) {
    shape.launcher = "torchrun";
    shape.nproc_per_node =
        settings.given("nproc_per_node") ? parse_workers(settings, "nproc_per_node", inputs, gpus) : 1;
    check_world_size(shape.num_machines, shape.nproc_per_node);
    return shape;
  }
  const Request request = read_request(settings);
  if (!request.flag.empty()) settings.set("distributed_type", request.type, settings.origin(request.flag));
  const Workers workers = decide_workers(settings, inputs, request, machines.max, gpus);
  settings.set("num_processes", workers.total.value, workers.total.origin);
  shape.nproc_per_node = workers.per_machine;
  check_world_size(machines.max, workers.per_machine);
  const bool several = std::int64_t{machines.max} * workers.per_machine > 1;
  // As under accelerate, a file with distributed_type NO starts one process, whatever number it contains.
  if (request.type == "NO" && several && !is_explicit_count(settings)) {
    if (machines.max > 1) fail_contradiction(settings, "distributed_type", "num_machines");
    shape.notes.push_back(fmt::format("{}: distributed_type NO starts one process, not the {} of {}",
                                      settings.origin("distributed_type"), workers.per_machine,
                                      workers.total.origin));
    shape.nproc_per_node = 1;
    settings.set("num_processes", 1, "distributed_type NO");
  }
  decide_type(settings, request, several, gpus, shape);
  shape.launcher = decide_launcher(settings, request, shape);
  shape.delegated =
      shape.launcher == "deepspeed" || shape.distributed_type == "XLA" || uses_mpi(shape, settings);
  shape.sets_ranks = decide_ranks(settings, shape);
  check_combinations(settings, request, shape);
  check_devices(settings, gpus, shape);
  record_derived(shape, settings);
  return shape;
}

}  // namespace acc::launcher
