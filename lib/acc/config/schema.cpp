// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>

namespace acc {
namespace {

// Spellings: of accelerate's launch alone, of both peers, of torchrun after 2.11, of acc's own (in every
// dialect).
Flag accelerate(std::string_view spelling) {
  return {.spelling = spelling};
}
Flag accelerate_switch(std::string_view spelling) {
  return {.spelling = spelling, .means = "true"};
}
Flag both(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true};
}
Flag both_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .means = "true"};
}
Flag later(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
Flag own(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
Flag own_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true, .means = "true"};
}

constexpr std::string_view kProcesses = "Processes and machines";
constexpr std::string_view kProgram = "Program";
constexpr std::string_view kDevices = "Devices and precision";
constexpr std::string_view kRendezvous = "Rendezvous";
constexpr std::string_view kFailure = "Failure and end";
constexpr std::string_view kOutput = "Output";
constexpr std::string_view kConfiguration = "Configuration";
constexpr std::string_view kDynamo = "torch.compile (dynamo)";

// clang-format off
const std::vector<SettingSpec>& rows() {
  static const std::vector<SettingSpec> all = {
      // --- Processes and machines
      {.name = "num_processes", .type = ValueType::integer, .in_file = true, .least = 1, .flags = {accelerate("--num_processes")},
       .group = kProcesses, .help = "Number of workers over all machines."},
      {.name = "nproc_per_node", .flags = {both("--nproc-per-node")}, .pet = "PET_NPROC_PER_NODE",
       .group = kProcesses, .help = "Workers on this machine: a number, auto, gpu or cpu."},
      {.name = "num_machines", .type = ValueType::integer, .in_file = true, .otherwise = "1", .least = 1, .flags = {accelerate("--num_machines")},
       .group = kProcesses, .help = "Number of machines."},
      {.name = "nnodes", .flags = {both("--nnodes")}, .pet = "PET_NNODES",
       .group = kProcesses, .help = "Number of machines, or a range MIN:MAX."},
      {.name = "machine_rank", .type = ValueType::integer, .in_file = true, .otherwise = "0",
       .least = 0, .flags = {accelerate("--machine_rank"), both("--node-rank")}, .pet = "PET_NODE_RANK",
       .group = kProcesses, .help = "Rank of this machine, from 0."},
      {.name = "role", .otherwise = "\"default\"", .flags = {both("--role")}, .pet = "PET_ROLE",
       .group = kProcesses, .help = "Name of the workers' role."},

      // --- Program
      {.name = "module", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--module"), both_switch("-m")}, .pet = "PET_MODULE",
       .group = kProgram, .help = "The program is a Python module, as in `python -m`."},
      {.name = "no_python", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--no-python")}, .pet = "PET_NO_PYTHON",
       .group = kProgram, .help = "Execute the program itself, never through Python."},
      {.name = "run_path", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--run-path")}, .pet = "PET_RUN_PATH",
       .group = kProgram, .help = "The program is a Python file, whatever its name and first line."},
      {.name = "legacy_launch", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--legacy-launch")},
       .group = kProgram, .help = "Give each worker --local-rank=N, as `python -m torch.distributed.launch` does."},
      {.name = "use_env", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--use-env")},
       .group = kProgram, .help = "With --legacy-launch: leave --local-rank out, LOCAL_RANK says it."},
      {.name = "start_method", .otherwise = "\"spawn\"", .allowed = {"spawn", "fork", "forkserver"}, .flags = {both("--start-method")}, .pet = "PET_START_METHOD",
       .group = kProgram, .help = "Accepted for torchrun's sake: each worker is a program of its own."},
      {.name = "python", .flags = {own("--python")},
       .group = kProgram, .help = "The Python for scripts and modules (otherwise PYTHON_EXEC, the active environment's, python3)."},
      {.name = "main_training_function", .in_file = true, .otherwise = "\"main\"", .flags = {accelerate("--main_training_function")},
       .group = kProgram, .help = "Function that TPU jobs call."},

      // --- Devices and precision
      {.name = "use_cpu", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--cpu")},
       .environment = "ACCELERATE_USE_CPU", .group = kDevices, .help = "Train on the CPU, also where there are GPUs."},
      {.name = "multi_gpu", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--multi_gpu")},
       .group = kDevices, .help = "One worker per GPU."},
      {.name = "gpu_ids", .in_file = true, .flags = {accelerate("--gpu_ids")},
       .group = kDevices, .help = "GPUs to use on this machine: `all`, or numbers separated by commas."},
      {.name = "mixed_precision", .in_file = true, .otherwise = "\"no\"", .allowed = {"no", "fp16", "bf16", "fp8"}, .flags = {accelerate("--mixed_precision")},
       .environment = "ACCELERATE_MIXED_PRECISION", .group = kDevices, .help = "Precision of the computation: no, fp16, bf16 or fp8."},
      {.name = "num_cpu_threads_per_process", .type = ValueType::integer, .flags = {accelerate("--num_cpu_threads_per_process")},
       .environment = "OMP_NUM_THREADS", .group = kDevices, .help = "Threads of a worker (otherwise the allowed cores divided among the workers)."},
      {.name = "enable_cpu_affinity", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--enable_cpu_affinity")},
       .environment = "ACCELERATE_CPU_AFFINITY", .group = kDevices, .help = "Bind each worker to the CPUs near its GPU."},
      {.name = "virtual_local_rank", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--virtual-local-rank")}, .pet = "PET_VIRTUAL_LOCAL_RANK",
       .group = kDevices, .help = "Each worker sees one GPU, and LOCAL_RANK 0."},
      {.name = "numa_binding", .allowed = {"node", "socket", "exclusive", "core-complex"}, .flags = {both("--numa-binding")},
       .group = kDevices, .help = "Bind each worker to the CPUs of its GPU's NUMA node, of the socket, to a share of the node's cores, or to one of its caches."},

      // --- Rendezvous
      {.name = "main_process_ip", .in_file = true, .flags = {accelerate("--main_process_ip"), both("--master-addr")}, .pet = "PET_MASTER_ADDR",
       .group = kRendezvous, .help = "Address of machine 0."},
      {.name = "main_process_port", .type = ValueType::integer, .in_file = true, .least = 0, .most = 65535, .flags = {accelerate("--main_process_port"), both("--master-port")}, .pet = "PET_MASTER_PORT",
       .group = kRendezvous, .help = "Port of the store on machine 0; 0 or none on a single machine: a free one."},
      {.name = "standalone", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--standalone")}, .pet = "PET_STANDALONE",
       .group = kRendezvous, .help = "A job of this machine alone, on a free port, with a random run id."},
      {.name = "rdzv_backend", .in_file = true, .otherwise = "\"static\"", .flags = {both("--rdzv-backend")}, .pet = "PET_RDZV_BACKEND",
       .group = kRendezvous, .help = "How machines find each other: static, c10d or etcd."},
      {.name = "rdzv_endpoint", .flags = {both("--rdzv-endpoint")}, .pet = "PET_RDZV_ENDPOINT",
       .group = kRendezvous, .help = "Where machines meet: host[:port]."},
      {.name = "rdzv_id", .otherwise = "\"none\"", .flags = {both("--rdzv-id")}, .pet = "PET_RDZV_ID",
       .group = kRendezvous, .help = "Name of the run, the same on all machines."},
      {.name = "rdzv_conf", .flags = {both("--rdzv-conf")}, .pet = "PET_RDZV_CONF",
       .group = kRendezvous, .help = "More about the rendezvous: key=value,... as in join_timeout=600."},
      {.name = "local_addr", .flags = {both("--local-addr")}, .pet = "PET_LOCAL_ADDR",
       .group = kRendezvous, .help = "Address under which the other machines reach this one."},
      {.name = "node_timeout", .type = ValueType::number, .otherwise = "3", .flags = {own("--node-timeout")},
       .group = kRendezvous, .help = "Seconds after which a silent machine is lost."},
      {.name = "spares", .type = ValueType::integer, .least = 0, .flags = {own("--spares")},
       .group = kRendezvous, .help = "Surplus machines that wait to replace lost ones (otherwise all that come)."},
      {.name = "same_network", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--same_network")},
       .group = kRendezvous, .help = "All machines are in one local network."},

      // --- Failure and end
      {.name = "max_restarts", .type = ValueType::integer, .otherwise = "0", .flags = {both("--max-restarts")}, .pet = "PET_MAX_RESTARTS",
       .group = kFailure, .help = "How often the workers are started again, all together, after one failed."},
      {.name = "retry_on", .otherwise = "\"!2,!126,!127\"", .flags = {own("--retry-on")},
       .group = kFailure, .help = "Failures that are worth a restart: exit codes (1,64-78), signals (SIGKILL, or signal for any), oom, all; with ! in front: not worth it."},
      {.name = "min_uptime", .type = ValueType::number, .otherwise = "0", .flags = {own("--min-uptime")},
       .group = kFailure, .help = "Seconds; what fails sooner after its start is not restarted."},
      {.name = "shutdown_timeout", .type = ValueType::number, .otherwise = "30", .flags = {later("--shutdown-timeout")}, .pet = "PET_SHUTDOWN_TIMEOUT",
       .group = kFailure, .help = "Seconds between asking workers to end and killing them."},
      {.name = "monitor_interval", .type = ValueType::number, .otherwise = "0.1", .flags = {both("--monitor-interval")}, .pet = "PET_MONITOR_INTERVAL",
       .group = kFailure, .help = "Accepted for torchrun's sake: acc reacts at once, it does not poll."},

      {.name = "signals_to_handle", .otherwise = "\"SIGTERM,SIGINT,SIGHUP,SIGQUIT\"", .flags = {both("--signals-to-handle")}, .pet = "PET_SIGNALS_TO_HANDLE",
       .group = kFailure, .help = "Signals that end the job, besides these four; others are handed on to the workers."},

      // --- Output
      {.name = "redirects", .otherwise = "\"0\"", .flags = {both("--redirects"), both("-r")}, .pet = "PET_REDIRECTS",
       .group = kOutput, .help = "Streams that go to files alone: 0 none, 1 stdout, 2 stderr, 3 both, or RANK:N,..."},
      {.name = "tee", .otherwise = "\"0\"", .flags = {both("--tee"), both("-t")}, .pet = "PET_TEE",
       .group = kOutput, .help = "Streams that go to files and, with a prefix, to the console; values as for --redirects."},
      {.name = "log_dir", .flags = {both("--log-dir")}, .pet = "PET_LOG_DIR",
       .group = kOutput, .help = "Folder for the log files."},
      {.name = "local_ranks_filter", .flags = {both("--local-ranks-filter")}, .pet = "PET_LOCAL_RANKS_FILTER",
       .group = kOutput, .help = "Only these local ranks reach the console, as in 0,2 or 0-3."},
      {.name = "ranks_filter", .flags = {own("--ranks-filter")},
       .group = kOutput, .help = "Only these ranks, counted over all machines, reach the console, as in 0,2 or 0-3."},
      {.name = "duplicate_stdout_filters", .flags = {both("--duplicate-stdout-filters")}, .pet = "PET_DUPLICATE_STDOUT_FILTERS",
       .group = kOutput, .help = "Lines of tee'd stdout with one of these words go to filtered_stdout.log too; words are separated by commas, `,,` is a comma."},
      {.name = "duplicate_stderr_filters", .flags = {both("--duplicate-stderr-filters")}, .pet = "PET_DUPLICATE_STDERR_FILTERS",
       .group = kOutput, .help = "The same for stderr and filtered_stderr.log."},
      {.name = "log_line_prefix_template", .otherwise = "\"[${role_name}${local_rank}]:\"", .flags = {later("--log-line-prefix-template")}, .pet = "PET_LOG_LINE_PREFIX_TEMPLATE",
       .group = kOutput, .help = "What stands in front of tee'd lines; knows ${role_name}, ${rank}, ${local_rank}, ${group_rank}, ${host} and ${attempt}."},
      {.name = "log_timestamps", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--log-timestamps")},
       .group = kOutput, .help = "The time in front of each line on the console, ISO 8601 to the millisecond."},
      {.name = "event_log", .flags = {own("--event-log")},
       .group = kOutput, .help = "File that gets a line of JSON for everything that happens to the job."},
      {.name = "event_log_handler", .otherwise = "\"null\"", .flags = {both("--event-log-handler")}, .pet = "PET_EVENT_LOG_HANDLER",
       .group = kOutput, .help = "console: events as lines of JSON on stderr; null or dynamic_rendezvous: none."},
      {.name = "logs_specs", .flags = {both("--logs-specs")},
       .group = kOutput, .help = "Refused but for `default`: it names a Python plug-in of torchrun."},
      {.name = "quiet", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--quiet"), accelerate_switch("-q")},
       .group = kOutput, .help = "Leave out notes."},

      // --- Configuration
      {.name = "config_file", .flags = {accelerate("--config_file")},
       .group = kConfiguration, .help = "The config file (otherwise the default one, if there is one)."},
      {.name = "dry_run", .allowed = {"text", "json"}, .flags = {{.spelling = "--dry-run", .torchrun = true, .new_to_torchrun = true, .means = "\"text\""}},
       .group = kConfiguration, .help = "Show what would be started and where each value comes from, and start nothing; `=json` for programs."},
      {.name = "print_completion", .allowed = {"bash", "zsh"}, .flags = {later("--print-completion")},
       .group = kConfiguration, .help = "Print a script that completes these flags, for that shell."},
      {.name = "debug", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--debug")},
       .environment = "ACCELERATE_DEBUG_MODE", .group = kConfiguration, .help = "Let the training check each distributed operation."},
      {.name = "compute_environment", .in_file = true, .otherwise = "\"LOCAL_MACHINE\"", .allowed = {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"},
       .help = "Where the job runs."},
      {.name = "distributed_type", .in_file = true,
       .allowed = {"NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_HPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA",
                   "MULTI_NEURON", "DEEPSPEED", "FSDP", "MEGATRON_LM", "XLA"},
       .help = "How the training is distributed."},
      {.name = "downcast_bf16", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .help = "TPU: float and double both become bfloat16."},

      // --- torch.compile
      {.name = "dynamo_backend", .otherwise = "\"no\"",
       .allowed = {"no", "eager", "aot_eager", "inductor", "aot_ts_nvfuser", "nvprims_nvfuser", "cudagraphs", "ofi", "fx2trt", "onnxrt",
                   "tensorrt", "aot_torchxla_trace_once", "torchxla_trace_once", "tvm", "hpu_backend", "neuron"},
       .flags = {accelerate("--dynamo_backend")}, .environment = "ACCELERATE_DYNAMO_BACKEND", .group = kDynamo, .help = "Back end of torch.compile."},
      {.name = "dynamo_mode", .otherwise = "\"default\"", .allowed = {"default", "reduce-overhead", "max-autotune"}, .flags = {accelerate("--dynamo_mode")},
       .environment = "ACCELERATE_DYNAMO_MODE", .group = kDynamo, .help = "Mode of torch.compile."},
      {.name = "dynamo_use_fullgraph", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_fullgraph")},
       .environment = "ACCELERATE_DYNAMO_USE_FULLGRAPH", .group = kDynamo, .help = "Refuse graph breaks."},
      {.name = "dynamo_use_dynamic", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_dynamic")},
       .environment = "ACCELERATE_DYNAMO_USE_DYNAMIC", .group = kDynamo, .help = "Compile for dynamic shapes."},
      {.name = "dynamo_use_regional_compilation", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_regional_compilation")},
       .environment = "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", .group = kDynamo, .help = "Compile repeated blocks once."},

      // --- Sections and TPU keys of the file
      {.name = "deepspeed_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "DeepSpeed."},
      {.name = "dynamo_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "torch.compile."},
      {.name = "fp8_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "8-bit floating point."},
      {.name = "fsdp_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "Fully sharded data parallel training."},
      {.name = "megatron_lm_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "Megatron-LM."},
      {.name = "mpirun_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "Start through mpirun."},
      {.name = "parallelism_config", .type = ValueType::section, .in_file = true, .otherwise = "{}", .help = "Sizes of the parallel dimensions."},
      {.name = "tpu_name", .in_file = true, .help = "Name of the TPU."},
      {.name = "tpu_zone", .in_file = true, .help = "Zone of the TPU."},
      {.name = "tpu_use_cluster", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .help = "The TPU is a pod."},
      {.name = "tpu_use_sudo", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .help = "Run commands on the pod with sudo."},
      {.name = "command_file", .in_file = true, .help = "File with commands to run when the pod starts."},
      {.name = "commands", .type = ValueType::list, .in_file = true, .help = "Commands to run when the pod starts."},
      {.name = "tpu_vm", .type = ValueType::list, .in_file = true, .help = "Names of the pod's machines."},
      {.name = "tpu_env", .type = ValueType::list, .in_file = true, .help = "Variables for the pod's machines."},
  };
  return all;
}
// clang-format on

}  // namespace

std::span<const SettingSpec> schema() {
  return rows();
}

const SettingSpec* find_setting(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &SettingSpec::name);
  return found == rows().end() ? nullptr : &*found;
}

std::vector<std::string> file_keys() {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : rows()) {
    if (spec.in_file) keys.emplace_back(spec.name);
  }
  std::ranges::sort(keys);
  return keys;
}

Value default_value(const SettingSpec& spec) {
  return Value::parse(spec.otherwise);
}

}  // namespace acc
