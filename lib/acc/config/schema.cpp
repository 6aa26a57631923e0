// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>
#include <string>

#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kProcesses = "Processes and machines";
constexpr std::string_view kProgram = "Program";
constexpr std::string_view kDevices = "Devices and precision";
constexpr std::string_view kRendezvous = "Rendezvous";
constexpr std::string_view kFailure = "Failure and end";
constexpr std::string_view kDebugging = "Debugging";
constexpr std::string_view kOutput = "Output";
constexpr std::string_view kConfiguration = "Configuration";

// clang-format off
std::vector<SettingSpec> general_rows() {
  return {
      // --- Processes and machines
      {.name = "num_processes", .type = ValueType::integer, .in_file = true, .since = "0.1.0", .least = 1, .flags = {accelerate("--num_processes")},
       .group = kProcesses, .help = "Number of workers over all machines."},
      {.name = "nproc_per_node", .flags = {both("--nproc-per-node")}, .pet = "PET_NPROC_PER_NODE",
       .group = kProcesses, .help = "Workers on this machine: a number, auto, gpu or cpu."},
      {.name = "num_machines", .type = ValueType::integer, .in_file = true, .in_sagemaker = true, .since = "0.1.0", .otherwise = "1", .least = 1, .flags = {accelerate("--num_machines")},
       .group = kProcesses, .help = "Number of machines."},
      {.name = "nnodes", .flags = {both("--nnodes")}, .pet = "PET_NNODES",
       .group = kProcesses, .help = "Number of machines, or a range MIN:MAX."},
      {.name = "machine_rank", .type = ValueType::integer, .in_file = true, .since = "0.1.0", .otherwise = "0",
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
       .group = kProgram, .help = "The Python for scripts and modules (otherwise PYTHON_EXEC, that of the environment that acc lies in, python3 or python on PATH, that of VIRTUAL_ENV or CONDA_PREFIX)."},

      // --- Devices and precision
      {.name = "use_cpu", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true, .since = "0.6.0", .otherwise = "false", .flags = {accelerate_switch("--cpu")},
       .environment = "ACCELERATE_USE_CPU", .group = kDevices, .help = "Train on the CPU, also where there are GPUs."},
      {.name = "multi_gpu", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--multi_gpu")},
       .group = kDevices, .help = "One worker per GPU."},
      {.name = "tpu", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--tpu")},
       .group = kDevices, .help = "Train on a TPU."},
      {.name = "use_fsdp", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--use_fsdp")},
       .group = kDevices, .help = "Shard the model with PyTorch's FSDP."},
      {.name = "use_deepspeed", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--use_deepspeed")},
       .group = kDevices, .help = "Train with DeepSpeed."},
      {.name = "use_megatron_lm", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--use_megatron_lm")},
       .group = kDevices, .help = "Train with Megatron-LM."},
      {.name = "use_parallelism_config", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--use_parallelism_config")},
       .group = kDevices, .help = "Use the sizes of the parallel dimensions (with FSDP)."},
      {.name = "gpu_ids", .in_file = true, .in_sagemaker = true, .since = "0.13.0", .flags = {accelerate("--gpu_ids")},
       .group = kDevices, .help = "GPUs to use on this machine: `all`, or numbers separated by commas."},
      {.name = "mixed_precision", .in_file = true, .in_sagemaker = true, .since = "0.6.0", .otherwise = "\"no\"", .allowed = {"no", "fp16", "bf16", "fp8"}, .flags = {accelerate("--mixed_precision")},
       .environment = "ACCELERATE_MIXED_PRECISION", .group = kDevices, .help = "Precision of the computation: no, fp16, bf16 or fp8."},
      {.name = "num_cpu_threads_per_process", .type = ValueType::integer, .flags = {accelerate("--num_cpu_threads_per_process")},
       .environment = "OMP_NUM_THREADS", .group = kDevices, .help = "Threads of a worker (otherwise the allowed cores divided among the workers)."},
      {.name = "enable_cpu_affinity", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true, .since = "0.29.0", .otherwise = "false", .flags = {accelerate_switch("--enable_cpu_affinity")},
       .environment = "ACCELERATE_CPU_AFFINITY", .group = kDevices, .help = "Bind each worker to the CPUs near its GPU."},
      {.name = "virtual_local_rank", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--virtual-local-rank")}, .pet = "PET_VIRTUAL_LOCAL_RANK",
       .group = kDevices, .help = "Each worker sees one GPU, and LOCAL_RANK 0."},
      {.name = "isolate_gpus", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--isolate-gpus")},
       .group = kDevices, .help = "Each worker sees one GPU; LOCAL_RANK stays."},
      {.name = "numa_binding", .allowed = {"node", "socket", "exclusive", "core-complex"}, .flags = {both("--numa-binding")},
       .group = kDevices, .help = "Bind each worker to CPUs near its GPU: its NUMA node, socket, own cores or core complex."},

      // --- Rendezvous
      {.name = "main_process_ip", .in_file = true, .since = "0.1.0", .flags = {accelerate("--main_process_ip"), both("--master-addr")}, .pet = "PET_MASTER_ADDR",
       .group = kRendezvous, .help = "Address of machine 0."},
      {.name = "main_process_port", .type = ValueType::integer, .in_file = true, .since = "0.1.0", .least = 0, .most = 65535, .flags = {accelerate("--main_process_port"), both("--master-port")}, .pet = "PET_MASTER_PORT",
       .group = kRendezvous, .help = "Port of the store on machine 0; 0 or none on a single machine: a free one."},
      {.name = "standalone", .type = ValueType::boolean, .otherwise = "false", .flags = {both_switch("--standalone")}, .pet = "PET_STANDALONE",
       .group = kRendezvous, .help = "A job of this machine alone, on a free port, with a random run id."},
      {.name = "rdzv_backend", .in_file = true, .since = "0.13.0", .otherwise = "\"static\"", .flags = {both("--rdzv-backend")}, .pet = "PET_RDZV_BACKEND",
       .group = kRendezvous, .help = "How machines find each other: static, c10d or etcd."},
      {.name = "rdzv_endpoint", .flags = {both("--rdzv-endpoint")}, .pet = "PET_RDZV_ENDPOINT",
       .group = kRendezvous, .help = "Where machines meet: host[:port]."},
      {.name = "rdzv_id", .otherwise = "\"none\"", .flags = {both("--rdzv-id")}, .pet = "PET_RDZV_ID",
       .group = kRendezvous, .help = "Name of the run, the same on all machines."},
      {.name = "rdzv_conf", .flags = {both("--rdzv-conf")}, .pet = "PET_RDZV_CONF",
       .group = kRendezvous, .help = "More about the rendezvous: key=value,... as in join_timeout=600."},
      {.name = "local_addr", .flags = {both("--local-addr")}, .pet = "PET_LOCAL_ADDR",
       .group = kRendezvous, .help = "Address under which the other machines reach this one."},
      {.name = "node_timeout", .type = ValueType::number, .flags = {own("--node-timeout")},
       .group = kRendezvous, .help = "Seconds after which a silent machine is lost (otherwise 15 where the job can go on: a range, or restarts left; else 60). One whose connection closes is lost at once."},
      {.name = "spares", .type = ValueType::integer, .least = 0, .flags = {own("--spares")},
       .group = kRendezvous, .help = "Surplus machines that wait to replace lost ones (otherwise all that come)."},
      {.name = "same_network", .type = ValueType::boolean, .in_file = true, .since = "0.13.0", .otherwise = "false", .flags = {accelerate_switch("--same_network")},
       .group = kRendezvous, .help = "All machines are in one local network."},

      // --- Failure and end
      {.name = "max_restarts", .type = ValueType::integer, .otherwise = "0", .flags = {both("--max-restarts")}, .pet = "PET_MAX_RESTARTS",
       .group = kFailure, .help = "How often the workers are started again, all together, after one failed."},
      {.name = "retry_on", .otherwise = "\"!2,!126,!127\"", .flags = {own("--retry-on")},
       .group = kFailure, .help = "Failures that are worth a restart: exit codes (1,64-78), signals (SIGKILL, or signal for any), oom, all; with ! in front: not worth it. Under torchrun's rules the default is all."},
      {.name = "min_uptime", .type = ValueType::number, .otherwise = "0", .flags = {own("--min-uptime")},
       .group = kFailure, .help = "Seconds; what fails sooner after its start is not restarted."},
      {.name = "shutdown_timeout", .type = ValueType::number, .otherwise = "30", .flags = {later("--shutdown-timeout")}, .pet = "PET_SHUTDOWN_TIMEOUT",
       .group = kFailure, .help = "Seconds between asking workers to end and killing them (otherwise TORCH_ELASTIC_SHUTDOWN_TIMEOUT)."},
      {.name = "monitor_interval", .type = ValueType::number, .otherwise = "0.1", .flags = {both("--monitor-interval")}, .pet = "PET_MONITOR_INTERVAL",
       .group = kFailure, .help = "Accepted for torchrun's sake: acc reacts at once, it does not poll."},

      {.name = "hang_timeout", .type = ValueType::number, .otherwise = "0", .flags = {own("--hang-timeout")},
       .group = kFailure, .help = "Seconds without any sign of life of a rank after which the job counts as hung; 0 never."},
      {.name = "on_hang", .otherwise = "\"report\"", .allowed = {"report", "restart", "kill"}, .flags = {own("--on-hang")},
       .group = kFailure, .help = "What follows when a job hangs and where each rank stands was said: nothing more, a restart, or the end."},
      {.name = "hang_watch", .otherwise = "\"activity\"", .allowed = {"activity", "output"}, .flags = {own("--hang-watch")},
       .group = kFailure, .help = "Signs of life: output and use of the CPU, or output alone (ranks that wait for NCCL may use the CPU)."},

      {.name = "pid_namespace", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--pid-namespace")},
       .group = kFailure, .help = "The workers get a pid namespace: nothing of them lives on, even when all of acc's processes are killed at once."},

      // --- Debugging
      {.name = "attach", .type = ValueType::integer, .least = 0, .flags = {own("--attach")},
       .group = kDebugging, .help = "This rank gets the terminal, as a program in a shell does (pdb, gdb, Ctrl-C); the others write to files."},
      {.name = "wrap_rank", .type = ValueType::list, .flags = {own("--wrap-rank")},
       .group = kDebugging, .help = "Words in front of a rank's program, as in '0:gdb --args' or 'all:valgrind'; may be repeated."},
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
      {.name = "log_level", .otherwise = "\"info\"", .allowed = {"trace", "debug", "info", "warn", "error", "off"}, .flags = {own("--log-level"), {.spelling = "-v", .torchrun = true, .new_to_torchrun = true, .means = "\"debug\""}},
       .group = kOutput, .help = "How much acc says of itself; -v is debug. Without the flag ACC_LOG_LEVEL decides, then LOGLEVEL."},
      {.name = "log_file", .flags = {own("--log-file")},
       .group = kOutput, .help = "File that gets what acc says too, each line with time, level, host and process number."},
      {.name = "log_pattern", .flags = {own("--log-pattern")},
       .group = kOutput, .help = "How those lines look, as spdlog's patterns describe it: %Y-%m-%d %H:%M:%S.%e is the time, %l the level, %N the host, %P the process, %v the text."},
      {.name = "quiet", .type = ValueType::boolean, .otherwise = "false", .flags = {own_switch("--quiet"), own_switch("-q")},
       .group = kOutput, .help = "The same as --log-level warn."},

      // --- Configuration
      {.name = "config_file", .flags = {accelerate("--config_file")},
       .group = kConfiguration, .help = "The config file (otherwise the default one, if there is one)."},
      {.name = "dry_run", .allowed = {"text", "json"}, .flags = {{.spelling = "--dry-run", .torchrun = true, .new_to_torchrun = true, .means = "\"text\""}},
       .group = kConfiguration, .help = "Show what would be started and where each value comes from, and start nothing; `=json` for programs."},
      {.name = "strict", .type = ValueType::boolean, .otherwise = "false", .flags = {accelerate_switch("--strict")},
       .group = kConfiguration, .help = "Refuse a config file with keys that are unknown or have no effect, instead of noting them."},
      {.name = "print_completion", .allowed = {"bash", "zsh"}, .flags = {later("--print-completion")},
       .group = kConfiguration, .help = "Print a script that completes these flags, for that shell."},
      {.name = "debug", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true, .since = "0.22.0", .otherwise = "false", .flags = {accelerate_switch("--debug")},
       .environment = "ACCELERATE_DEBUG_MODE", .group = kConfiguration, .help = "Let the training check each distributed operation."},
      {.name = "compute_environment", .in_file = true, .in_sagemaker = true, .since = "0.2.0", .otherwise = "\"LOCAL_MACHINE\"", .allowed = {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"},
       .help = "Where the job runs."},
      {.name = "distributed_type", .in_file = true,
       .since = "0.1.0", .allowed = {"NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_HPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA",
                   "MULTI_NEURON", "DEEPSPEED", "FSDP", "MEGATRON_LM", "XLA"},
       .help = "How the training is distributed."},

  };
}
// clang-format on

std::vector<SettingSpec> all_rows() {
  std::vector<SettingSpec> all = general_rows();
  for (const auto& family : {dynamo_rows(), fsdp_rows(), deepspeed_rows(), megatron_rows(),
                             parallelism_rows(), fp8_rows(), mpi_rows(), tpu_rows(), sagemaker_rows()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

const std::vector<SettingSpec>& rows() {
  static const std::vector<SettingSpec> all = all_rows();
  return all;
}

// What stands in front of every name of the section.
std::string prefix_of(std::string_view section) {
  if (section == "parallelism_config") return "parallelism_config_";
  return std::string(section.substr(0, section.rfind("config")));
}

}  // namespace

std::span<const SettingSpec> schema() {
  return rows();
}

const SettingSpec* find_setting(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &SettingSpec::name);
  return found == rows().end() ? nullptr : &*found;
}

std::string_view file_key(const SettingSpec& spec) {
  return spec.key.empty() ? spec.name : spec.key;
}

bool at_top_level(const SettingSpec& spec, ConfigKind kind) {
  return spec.section.empty() && (kind == ConfigKind::cluster ? spec.in_file : spec.in_sagemaker);
}

const SettingSpec* find_file_key(std::string_view key, ConfigKind kind) {
  const auto found = std::ranges::find_if(
      rows(), [&](const SettingSpec& spec) { return at_top_level(spec, kind) && file_key(spec) == key; });
  return found == rows().end() ? nullptr : &*found;
}

const SettingSpec* find_section_key(std::string_view section, std::string_view key) {
  const std::string prefixed = prefix_of(section) + std::string(key);
  const auto found = std::ranges::find_if(rows(), [&](const SettingSpec& spec) {
    if (spec.section != section) return false;
    return file_key(spec) == key || spec.name == key || spec.name == prefixed ||
           std::ranges::find(spec.former, key) != spec.former.end() ||
           std::ranges::find(spec.former, prefixed) != spec.former.end();
  });
  return found == rows().end() ? nullptr : &*found;
}

std::vector<std::string> file_keys(ConfigKind kind) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : rows()) {
    if (at_top_level(spec, kind)) keys.emplace_back(file_key(spec));
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<std::string> section_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : rows()) {
    if (spec.section == section) keys.emplace_back(file_key(spec));
  }
  return keys;
}

Value default_value(const SettingSpec& spec) {
  return Value::parse(spec.otherwise);
}

}  // namespace acc::launcher
