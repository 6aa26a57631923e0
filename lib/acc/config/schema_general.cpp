// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

// clang-format off
std::span<const SettingSpec> process_rows() {
  static SettingSpec rows[] = {
      {.name = "num_processes", .type = ValueType::integer, .in_file = true, .since = "0.1.0",
       .allowed = {"gpu", "auto", "cpu"}, .min = 1,
       .flags = {accelerate("--num_processes")},
       .help = "Number of workers over all machines; on one machine also a word, as of --nproc-per-node.",
       .essential = true},
      {.name = "nproc_per_node",
       .flags = {both("--nproc-per-node")}, .pet = "PET_NPROC_PER_NODE",
       .help = "Workers on this machine: a number, auto, gpu or cpu.",
       .essential = true},
      {.name = "num_machines", .type = ValueType::integer, .in_file = true, .in_sagemaker = true,
       .since = "0.1.0", .default_value = "1", .min = 1,
       .flags = {accelerate("--num_machines")},
       .help = "Number of machines.",
       .essential = true},
      {.name = "nnodes",
       .flags = {both("--nnodes")}, .pet = "PET_NNODES",
       .help = "Number of machines, or a range MIN:MAX.",
       .essential = true},
      {.name = "machine_rank", .type = ValueType::integer, .in_file = true, .since = "0.1.0",
       .default_value = "0", .min = 0,
       .flags = {accelerate("--machine_rank"), both("--node-rank")}, .pet = "PET_NODE_RANK",
       .help = "Rank of this machine, from 0.",
       .essential = true},
      {.name = "engine", .default_value = "\"auto\"", .allowed = {"auto", "slurm", "mpi", "k8s", "none"},
       .flags = {own("--engine")}, .variable = "ACC_ENGINE",
       .help = "What started acc on each machine, and tells their number, the rank of this one and the address "
               "of the first: slurm, mpi, k8s, auto (whichever is found) or none. Under torchrun's rules the "
               "default is none."},
      {.name = "srun", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--srun")},
       .help = "In a batch script or a shell of a Slurm allocation: start acc on all its nodes with srun."},
      {.name = "hosts",
       .flags = {own("--hosts")},
       .help = "Start the job from here on these hosts, over ssh: a,b:4,user@c, with the number of workers of a "
               "host behind its colon (default: one per device). The first is machine 0.",
       .essential = true},
      {.name = "hostfile",
       .flags = {own("--hostfile")},
       .help = "The same from a file with a line for each host: `host slots=4`, `host:4` or `host`."},
      {.name = "export", .type = ValueType::list,
       .flags = {own("--export")},
       .help = "With --hosts: a variable NAME, or NAME=VALUE, that the hosts get besides those that they always "
               "get; may be repeated."},
      {.name = "host_timeout", .type = ValueType::number, .default_value = "10",
       .flags = {own("--host-timeout")},
       .help = "With --hosts: seconds in which each host must answer."},
      {.name = "role", .default_value = "\"default\"",
       .flags = {both("--role")}, .pet = "PET_ROLE",
       .help = "Name of the workers' role."},
  };
  return in_group("Processes and machines", rows);
}

std::span<const SettingSpec> program_rows() {
  static SettingSpec rows[] = {
      {.name = "module", .type = ValueType::boolean, .default_value = "false",
       .flags = {both_switch("--module"), both_switch("-m")}, .pet = "PET_MODULE",
       .help = "The program is a Python module, as in `python -m`.",
       .essential = true},
      {.name = "no_python", .type = ValueType::boolean, .default_value = "false",
       .flags = {both_switch("--no-python")}, .pet = "PET_NO_PYTHON",
       .help = "Execute the program itself, never through Python."},
      {.name = "run_path", .type = ValueType::boolean, .default_value = "false",
       .flags = {both_switch("--run-path")}, .pet = "PET_RUN_PATH",
       .help = "The program is a Python file, whatever its name and first line."},
      {.name = "legacy_launch", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--legacy-launch")},
       .help = "Give each worker --local-rank=N, as `python -m torch.distributed.launch` does."},
      {.name = "use_env", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--use-env")},
       .help = "With --legacy-launch: do not pass --local-rank; the script reads LOCAL_RANK."},
      {.name = "start_method", .default_value = "\"spawn\"", .allowed = {"spawn", "fork", "forkserver"},
       .flags = {both("--start-method")}, .pet = "PET_START_METHOD",
       .help = "Accepted for compatibility with torchrun; each worker is a program of its own."},
      {.name = "python",
       .flags = {own("--python")},
       .help = "The Python for scripts and modules (default: PYTHON_EXEC, that of the environment that acc "
               "lies in, python3 or python on PATH, that of VIRTUAL_ENV or CONDA_PREFIX)."},
      {.name = "preload", .in_file = true,
       .flags = {own("--preload")}, .variable = "ACC_PRELOAD",
       .help = "Python modules, as in torch,transformers, that one process of each machine imports; workers are forked "
               "from it, without the imports.",
       .essential = true},
  };
  return in_group("Program", rows);
}

std::span<const SettingSpec> device_rows() {
  static SettingSpec rows[] = {
      {.name = "use_cpu", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true, .since = "0.6.0",
       .default_value = "false",
       .flags = {accelerate_switch("--cpu")}, .environment = "ACCELERATE_USE_CPU",
       .help = "Train on the CPU, also where there are GPUs.",
       .essential = true},
      {.name = "multi_gpu", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--multi_gpu")},
       .help = "One worker per GPU."},
      {.name = "tpu", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--tpu")},
       .help = "Train on a TPU."},
      {.name = "use_fsdp", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--use_fsdp")},
       .help = "Shard the model with PyTorch's FSDP."},
      {.name = "use_deepspeed", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--use_deepspeed")},
       .help = "Train with DeepSpeed."},
      {.name = "use_megatron_lm", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--use_megatron_lm")},
       .help = "Train with Megatron-LM."},
      {.name = "use_parallelism_config", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--use_parallelism_config")},
       .help = "Use the sizes of the parallel dimensions (with FSDP)."},
      {.name = "gpu_ids", .in_file = true, .in_sagemaker = true, .since = "0.13.0",
       .flags = {accelerate("--gpu_ids")},
       .help = "GPUs to use on this machine: `all`, or numbers separated by commas."},
      {.name = "mixed_precision", .in_file = true, .in_sagemaker = true, .since = "0.6.0",
       .default_value = "\"no\"", .allowed = {"no", "fp16", "bf16", "fp8"},
       .ignore_case = true,
       .flags = {accelerate("--mixed_precision")}, .environment = "ACCELERATE_MIXED_PRECISION",
       .help = "Precision of the computation: no, fp16, bf16 or fp8.",
       .essential = true},
      {.name = "num_cpu_threads_per_process", .type = ValueType::integer,
       .flags = {accelerate("--num_cpu_threads_per_process")}, .environment = "OMP_NUM_THREADS",
       .help = "Threads of a worker (default: the allowed cores divided among the workers)."},
      {.name = "enable_cpu_affinity", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true,
       .since = "0.29.0", .default_value = "false",
       .flags = {accelerate_switch("--enable_cpu_affinity")}, .environment = "ACCELERATE_CPU_AFFINITY",
       .help = "Bind each worker to the CPUs near its GPU."},
      {.name = "virtual_local_rank", .type = ValueType::boolean, .default_value = "false",
       .flags = {both_switch("--virtual-local-rank")}, .pet = "PET_VIRTUAL_LOCAL_RANK",
       .help = "Each worker sees one GPU, and LOCAL_RANK 0."},
      {.name = "isolate_gpus", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--isolate-gpus")},
       .help = "Each worker sees one GPU; LOCAL_RANK stays."},
      {.name = "numa_binding", .allowed = {"node", "socket", "exclusive", "core-complex"},
       .flags = {both("--numa-binding")},
       .help = "Bind each worker to CPUs near its GPU: its NUMA node, socket, own cores or core complex."},
  };
  return in_group("Devices and precision", rows);
}

std::span<const SettingSpec> rendezvous_rows() {
  static SettingSpec rows[] = {
      {.name = "main_process_ip", .in_file = true, .since = "0.1.0",
       .flags = {accelerate("--main_process_ip"), both("--master-addr")}, .pet = "PET_MASTER_ADDR",
       .help = "Address of machine 0.",
       .essential = true},
      {.name = "main_process_port", .type = ValueType::integer, .in_file = true, .since = "0.1.0", .min = 0,
       .max = 65535,
       .flags = {accelerate("--main_process_port"), both("--master-port")}, .pet = "PET_MASTER_PORT",
       .help = "Port of the store on machine 0; 0 or none on a single machine: a free one."},
      {.name = "standalone", .type = ValueType::boolean, .default_value = "false",
       .flags = {both_switch("--standalone")}, .pet = "PET_STANDALONE",
       .help = "A job of this machine alone, on a free port, with a random run id.",
       .essential = true},
      {.name = "rdzv_backend", .in_file = true, .since = "0.13.0", .default_value = "\"static\"",
       .flags = {both("--rdzv-backend")}, .pet = "PET_RDZV_BACKEND",
       .help = "How machines find each other: static, c10d or etcd.",
       .essential = true},
      {.name = "rdzv_endpoint",
       .flags = {both("--rdzv-endpoint")}, .pet = "PET_RDZV_ENDPOINT",
       .help = "Where machines meet: host[:port]."},
      {.name = "rdzv_id", .default_value = "\"none\"",
       .flags = {both("--rdzv-id")}, .pet = "PET_RDZV_ID",
       .help = "Name of the run, the same on all machines."},
      {.name = "rdzv_conf",
       .flags = {both("--rdzv-conf")}, .pet = "PET_RDZV_CONF",
       .help = "More about the rendezvous: key=value,... as in join_timeout=600."},
      {.name = "local_addr",
       .flags = {both("--local-addr")}, .pet = "PET_LOCAL_ADDR",
       .help = "Address under which the other machines reach this one."},
      {.name = "node_timeout", .type = ValueType::number,
       .flags = {own("--node-timeout")},
       .help = "Seconds after which a silent machine is lost (default: 15 where the job can go on: a range, "
               "or restarts left; else 60). One whose connection closes is lost at once."},
      {.name = "spares", .type = ValueType::integer, .min = 0,
       .flags = {own("--spares")},
       .help = "Surplus machines that wait to replace lost ones (default: all that come)."},
      {.name = "same_network", .type = ValueType::boolean, .in_file = true, .since = "0.13.0",
       .default_value = "false",
       .flags = {accelerate_switch("--same_network")},
       .help = "All machines are in one local network."},
  };
  return in_group("Rendezvous", rows);
}

std::span<const SettingSpec> failure_rows() {
  static SettingSpec rows[] = {
      {.name = "max_restarts", .type = ValueType::integer, .default_value = "0",
       .flags = {both("--max-restarts")}, .pet = "PET_MAX_RESTARTS",
       .help = "How often the workers are started again, all together, after one failed.",
       .essential = true},
      {.name = "retry_on", .default_value = "\"!2,!126,!127\"",
       .flags = {own("--retry-on")},
       .help = "Failures that are worth a restart: exit codes (1,64-78), signals (SIGKILL, or signal for "
               "any), oom, all; with ! in front: not worth it. Under torchrun's rules the default is all."},
      {.name = "min_uptime", .type = ValueType::number, .default_value = "0",
       .flags = {own("--min-uptime")},
       .help = "Seconds; what fails sooner after its start is not restarted."},
      {.name = "shutdown_timeout", .type = ValueType::number, .default_value = "30",
       .flags = {later("--shutdown-timeout")}, .pet = "PET_SHUTDOWN_TIMEOUT",
       .help = "Seconds between asking workers to end and killing them (default: "
               "TORCH_ELASTIC_SHUTDOWN_TIMEOUT; less where what started acc gives less)."},
      {.name = "requeue_on_preemption", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--requeue-on-preemption")},
       .help = "Exit code 75, which asks a scheduler to start the job again, if the job got SIGTERM, or "
               "notice of its end by SIGUSR1 or SIGUSR2, and ended in time without a failure."},
      {.name = "monitor_interval", .type = ValueType::number, .default_value = "0.1",
       .flags = {both("--monitor-interval")}, .pet = "PET_MONITOR_INTERVAL",
       .help = "Accepted for compatibility with torchrun; acc does not poll."},
      {.name = "preflight", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--preflight")},
       .help = "Check the nodes and the network between them before each start of the workers, and start none if "
               "something is wrong; on all nodes, or on none."},
      {.name = "hang_timeout", .type = ValueType::number, .default_value = "0",
       .flags = {own("--hang-timeout")},
       .help = "Seconds without activity of a rank after which the job counts as hung; 0: never.",
       .essential = true},
      {.name = "on_hang", .default_value = "\"report\"", .allowed = {"report", "restart", "kill"},
       .flags = {own("--on-hang")},
       .help = "What to do with a hung job after reporting the state of its ranks: report (nothing more), "
               "restart or kill."},
      {.name = "hang_watch", .default_value = "\"activity\"", .allowed = {"activity", "output"},
       .flags = {own("--hang-watch")},
       .help = "What counts as activity: output and use of the CPU, or output alone (ranks that wait for "
               "NCCL may use the CPU)."},
      {.name = "pid_namespace", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--pid-namespace")},
       .help = "The workers run in a pid namespace: none of their processes survives, even if all of acc's "
               "processes are killed at once."},
      {.name = "signals_to_handle", .default_value = "\"SIGTERM,SIGINT,SIGHUP,SIGQUIT\"",
       .flags = {both("--signals-to-handle")}, .pet = "PET_SIGNALS_TO_HANDLE",
       .help = "Signals that end the job, besides these four; others are forwarded to the workers."},
  };
  return in_group("Failure and end", rows);
}

std::span<const SettingSpec> debugging_rows() {
  static SettingSpec rows[] = {
      {.name = "attach", .type = ValueType::integer, .min = 0,
       .flags = {own("--attach")},
       .help = "This rank gets the terminal, as a program in a shell does (pdb, gdb, Ctrl-C); the others "
               "write to files."},
      {.name = "wrap_rank", .type = ValueType::list,
       .flags = {own("--wrap-rank")},
       .help = "Words in front of a rank's program, as in '0:gdb --args' or 'all:valgrind'; may be "
               "repeated."},
  };
  return in_group("Debugging", rows);
}

std::span<const SettingSpec> output_rows() {
  static SettingSpec rows[] = {
      {.name = "redirects", .default_value = "\"0\"",
       .flags = {both("--redirects"), both("-r")}, .pet = "PET_REDIRECTS",
       .help = "Streams that go to files alone: 0 none, 1 stdout, 2 stderr, 3 both, or RANK:N,..."},
      {.name = "tee", .default_value = "\"0\"",
       .flags = {both("--tee"), both("-t")}, .pet = "PET_TEE",
       .help = "Streams that go to files and, with a prefix, to the console; values as for --redirects."},
      {.name = "log_dir",
       .flags = {both("--log-dir")}, .pet = "PET_LOG_DIR",
       .help = "Folder for the log files.",
       .essential = true},
      {.name = "local_ranks_filter",
       .flags = {both("--local-ranks-filter")}, .pet = "PET_LOCAL_RANKS_FILTER",
       .help = "Only these local ranks reach the console, as in 0,2 or 0-3."},
      {.name = "ranks_filter",
       .flags = {own("--ranks-filter")},
       .help = "Only these ranks, counted over all machines, reach the console, as in 0,2 or 0-3."},
      {.name = "duplicate_stdout_filters",
       .flags = {both("--duplicate-stdout-filters")}, .pet = "PET_DUPLICATE_STDOUT_FILTERS",
       .help = "Lines of tee'd stdout with one of these words go to filtered_stdout.log too; words are "
               "separated by commas, `,,` is a comma."},
      {.name = "duplicate_stderr_filters",
       .flags = {both("--duplicate-stderr-filters")}, .pet = "PET_DUPLICATE_STDERR_FILTERS",
       .help = "The same for stderr and filtered_stderr.log."},
      {.name = "log_line_prefix_template", .default_value = "\"[${role_name}${local_rank}]:\"",
       .flags = {later("--log-line-prefix-template")}, .pet = "PET_LOG_LINE_PREFIX_TEMPLATE",
       .help = "Prefix of tee'd lines; knows ${role_name}, ${rank}, ${local_rank}, "
               "${group_rank}, ${hostname} and ${attempt}."},
      {.name = "log_timestamps", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--log-timestamps")},
       .help = "Begin each line on the console with the time, ISO 8601 to the millisecond."},
      {.name = "event_log",
       .flags = {own("--event-log")},
       .help = "File that gets a line of JSON for everything that happens to the job."},
      {.name = "event_log_handler", .default_value = "\"null\"",
       .flags = {both("--event-log-handler")}, .pet = "PET_EVENT_LOG_HANDLER",
       .help = "console: events as lines of JSON on stderr; null or dynamic_rendezvous: none."},
      {.name = "logs_specs",
       .flags = {both("--logs-specs")},
       .help = "Only `default` is accepted: other values name a Python plug-in of torchrun."},
      {.name = "log_level", .default_value = "\"info\"",
       .allowed = {"trace", "debug", "info", "warn", "error", "off"},
       .flags = {own("--log-level"),
                 {.spelling = "-v", .torchrun = true, .new_to_torchrun = true, .implicit_value = "\"debug\""}},
       .help = "Level of acc's own messages; -v is debug. Without the flag ACC_LOG_LEVEL decides, then "
               "LOGLEVEL."},
      {.name = "log_file",
       .flags = {own("--log-file")},
       .help = "File for acc's own messages, each line with time, level, host and process id."},
      {.name = "log_pattern",
       .flags = {own("--log-pattern")},
       .help = "How those lines look, as spdlog's patterns describe it: %Y-%m-%d %H:%M:%S.%e is the time, %l "
               "the level, %N the host, %P the process, %v the text."},
      {.name = "quiet", .type = ValueType::boolean, .default_value = "false",
       .flags = {own_switch("--quiet"), own_switch("-q")},
       .help = "The same as --log-level warn."},
  };
  return in_group("Output", rows);
}

std::span<const SettingSpec> configuration_rows() {
  static SettingSpec rows[] = {
      {.name = "config_file",
       .flags = {accelerate("--config_file")},
       .help = "The config file (default: the default one, if there is one).",
       .essential = true},
      {.name = "dry_run", .allowed = {"text", "json"},
       .flags = {{.spelling = "--dry-run", .torchrun = true, .new_to_torchrun = true, .implicit_value = "\"text\""}},
       .help = "Show what would be started and where each value comes from, and start nothing; `=json` for "
               "programs.",
       .essential = true},
      {.name = "print_script", .allowed = {"slurm", "k8s", "jobset", "pbs"},
       .flags = {accelerate("--print-script")},
       .help = "Print a script (slurm, pbs) or a manifest of Kubernetes (k8s: an Indexed Job, jobset) that starts this "
               "command on a cluster, and start nothing."},
      {.name = "strict", .type = ValueType::boolean, .default_value = "false",
       .flags = {accelerate_switch("--strict")},
       .help = "Refuse a config file with keys that are unknown or have no effect, instead of noting them."},
      {.name = "print_completion", .allowed = {"bash", "zsh", "tcsh"},
       .flags = {later("--print-completion")},
       .help = "Print a script that completes these flags, for that shell."},
      {.name = "debug", .type = ValueType::boolean, .in_file = true, .in_sagemaker = true, .since = "0.22.0",
       .default_value = "false",
       .flags = {accelerate_switch("--debug")}, .environment = "ACCELERATE_DEBUG_MODE",
       .help = "Let the training check each distributed operation."},
  };
  return in_group("Configuration", rows);
}

// Keys of config files that have no flag.
std::span<const SettingSpec> file_rows() {
  static SettingSpec rows[] = {
      {.name = "compute_environment", .in_file = true, .in_sagemaker = true, .since = "0.2.0",
       .default_value = "\"LOCAL_MACHINE\"", .allowed = {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"},
       .help = "Where the job runs."},
      {.name = "distributed_type", .in_file = true, .since = "0.1.0",
       .allowed = {"NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_HPU", "MULTI_NPU", "MULTI_MLU",
                   "MULTI_SDAA", "MULTI_MUSA", "MULTI_NEURON", "DEEPSPEED", "FSDP", "MEGATRON_LM", "XLA"},
       .help = "How the training is distributed."},
  };
  return rows;
}
// clang-format on

}  // namespace

std::vector<std::span<const SettingSpec>> general_rows() {
  return {process_rows(),   program_rows(), device_rows(),        rendezvous_rows(), failure_rows(),
          debugging_rows(), output_rows(),  configuration_rows(), file_rows()};
}

}  // namespace acc::launcher
