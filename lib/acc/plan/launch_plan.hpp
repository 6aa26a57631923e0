// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/topology.hpp"
#include "acc/config/setting_types.hpp"
#include "acc/plan/launcher.hpp"
#include "acc/plan/rendezvous_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// A set of kinds of worker failures.
struct FailureKinds {
  std::set<int> exit_codes = {};
  std::set<int> signals = {};
  bool any_signal = false;
  /// Killed by the kernel because memory ran out.
  bool oom = false;

  bool operator==(const FailureKinds&) const = default;
};

/// The failures after which the job is restarted.
struct RetryOn {
  /// All failures, unless some are listed in `included`.
  bool all = true;
  FailureKinds included = {};
  /// Takes precedence over `included`.
  FailureKinds excluded = {};

  bool operator==(const RetryOn&) const = default;
};

/// The CPUs that a worker is bound to, and the NUMA nodes that hold them.
struct CpuBinding {
  CpuSet cpus = {};
  std::vector<int> numa_nodes = {};

  bool operator==(const CpuBinding&) const = default;
};

/// A set of standard streams of a worker; the values are those of torchrun.
enum class Streams : unsigned { none = 0, out = 1, err = 2, both = 3 };

constexpr bool has(Streams streams, Streams stream) {
  return (static_cast<unsigned>(streams) & static_cast<unsigned>(stream)) != 0;
}

/// torchrun's `--tee` and `--redirects`: the streams of each local rank.
struct StreamMap {
  Streams default_streams = Streams::none;
  std::map<int, Streams> of_rank = {};

  Streams streams_of(int local_rank) const {
    const auto entry = of_rank.find(local_rank);
    return entry == of_rank.end() ? default_streams : entry->second;
  }
  bool operator==(const StreamMap&) const = default;
};

/// Where the output of workers goes.
struct OutputPlan {
  /// The local rank of the first worker: above 0 where the engine started several tasks on the node.
  int first_local_rank = 0;
  StreamMap redirects = {};
  StreamMap tee = {};
  /// The parent of the per-job log folder; empty: a new folder under TMPDIR if one is needed.
  std::filesystem::path log_dir = {};
  /// `--log-dir /dev/null`: no folders, no redirects, no error file.
  bool no_logs = false;
  /// All streams pass through acc, so that it sees whether a rank writes (hang detection).
  bool observed = false;
  /// Only these local ranks reach the console; empty: all.
  std::vector<int> local_ranks_filter = {};
  /// The same for ranks over all nodes.
  std::vector<int> ranks_filter = {};
  /// Tee'd lines with one of these words go to `filtered_stdout.log` and `filtered_stderr.log` too.
  std::vector<std::string> duplicate_stdout_filters = {};
  std::vector<std::string> duplicate_stderr_filters = {};
  /// Each line on the console begins with its time.
  bool log_timestamps = false;
  /// Prefix of each tee'd line; the names that line_prefix() knows are expanded.
  std::string line_prefix_template = "[${role_name}${local_rank}]:";

  bool operator==(const OutputPlan&) const = default;
};

struct HangPlan {
  /// The time without activity after which the job counts as hung; 0: no detection.
  std::chrono::milliseconds timeout = {};
  OnHang action = OnHang::report;
  /// What counts as activity.
  ActivityKind watch = ActivityKind::activity;

  bool operator==(const HangPlan&) const = default;
};

/// Whether the nodes are checked before their workers start (`--preflight`).
enum class Preflight {
  none,
  before_workers,
  alone,  ///< `acc test --nodes`: no worker is started
};

/// Words before a rank's program, such as a debugger (`--wrap-rank`).
struct RankWrap {
  /// Absent: every rank.
  std::optional<int> rank = {};
  std::vector<std::string> words = {};
  /// The file to execute, found and checked.
  std::filesystem::path program = {};

  bool operator==(const RankWrap&) const = default;
};

/// The ranks of a worker whose acc the engine started for it alone, among the tasks of its node.
struct TaskPosition {
  int local_rank = 0;
  int local_size = 1;
  /// Absent: the engine does not tell.
  std::optional<int> node_rank = {};
  std::optional<int> num_nodes = {};

  bool operator==(const TaskPosition&) const = default;
};

/// All decisions about a job, made before the first process starts.
struct LaunchPlan {
  Dialect dialect = Dialect::launch;
  /// A single process of a simple job gets no rank, as under accelerate, so that the script does not
  /// initialize a process group.
  Launcher launcher = Launcher::simple;
  bool sets_ranks = true;
  /// The single worker is another launcher, which starts the workers of the job.
  bool delegated = false;

  /// The argv of a worker, before worker_command() expands `$local_rank` in it.
  std::vector<std::string> worker_command = {};
  /// The file to execute, found and checked.
  std::filesystem::path program = {};
  /// The modules that one Python imports for all workers, which are forked from it; empty: none.
  std::vector<std::string> preload = {};
  /// Python workers are followed without a change of their script (launch/watch_folder.hpp).
  bool watch = false;
  /// The bytes of the folder in memory that outlives workers (launch/memory_folder.hpp); 0: there is none.
  std::uint64_t memory_checkpoints = 0;
  /// The variables that acc adds for all workers to those it inherited.
  Environment environment = {};
  /// Lines for `.deepspeed_env`, which DeepSpeed passes to its workers on other machines.
  std::vector<std::string> deepspeed_env = {};
  /// The environment of acc.
  Environment inherited = {};
  /// The process id that distinguishes this node from others on the same machine; 0: that of the caller.
  int process = 0;
  /// Distinguishes this node from others with the same address and process id, as those of two containers can
  /// have, where nodes meet in a file. launch() draws it.
  std::int64_t local_id = 0;

  int nproc_per_node = 1;
  int num_machines = 1;
  int machine_rank = 0;
  /// Each copy of acc is a task of the engine that starts one worker. Tasks then count as machines.
  std::optional<TaskPosition> task = {};
  /// acc was started here by a client (`--hosts`), which shows what all nodes say.
  bool has_client = false;
  std::string role = "default";
  std::string run_id = "none";
  std::string master_addr = "127.0.0.1";
  /// 0: a free port, known when the store is bound.
  std::uint16_t master_port = 0;
  /// The numeric addresses on which the store of a single-machine job listens.
  std::vector<std::string> store_addresses = {"127.0.0.1"};
  RendezvousPlan rendezvous = {};
  /// Whether acc serves the store of the workers; otherwise rank 0 does, on MASTER_PORT.
  bool use_agent_store = true;
  int max_restarts = 0;
  RetryOn retry_on = {};
  /// A worker that fails sooner after its start is not restarted.
  std::chrono::milliseconds min_uptime = {};
  /// After so many restarts in a row in which no rank got any further there is no other; 0: they do not
  /// count.
  int restarts_without_progress = 0;
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  /// A SIGTERM within this time of another is the same request.
  std::chrono::milliseconds repeated_sigterm = std::chrono::milliseconds(100);
  /// Signals that announce the end of the job: all nodes learn of one, and workers ignore it until they
  /// install a handler.
  std::set<int> notice_signals = {};
  /// Those of SIGUSR1 and SIGUSR2 that acc was started to ignore: its workers do so, too.
  std::set<int> ignored_signals = {};
  /// Exit code 75 after a notice, or a SIGTERM, that the job obeyed in time.
  bool requeue_on_preemption = false;
  HangPlan hang = {};
  Preflight preflight = Preflight::none;
  /// With Preflight::alone: the result as JSON, not as a table.
  bool preflight_json = false;
  /// The workers run in a pid namespace of the job.
  bool pid_namespace = false;
  /// The rank attached to the terminal, if it runs on this node; the others then get no input.
  std::optional<int> attach = {};
  std::vector<RankWrap> wraps = {};
  /// The signals that end the job; others are passed on to the workers.
  std::set<int> stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  /// The text of `--signals-to-handle`, which workers see.
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  /// The file of torchrun's file timer, where workers set deadlines; empty: none.
  std::filesystem::path timer_file = {};
  /// Each worker sees one device and LOCAL_RANK 0.
  bool virtual_local_rank = false;
  /// The device that each worker sees, by local rank; empty: all devices.
  std::vector<std::string> device_of_rank = {};
  /// HIP_VISIBLE_DEVICES has the device, too.
  bool masks_hip = false;
  /// The CPUs of each worker, by local rank; empty: no binding.
  std::vector<CpuBinding> cpus_of_rank = {};
  OutputPlan output = {};
  log::Options logging = {};
  /// The file for events of the job, one line of JSON each; empty: none.
  std::filesystem::path event_log = {};
  /// Another such file, for the command that starts the job.
  std::filesystem::path event_copy = {};
  /// Events are also written to the standard error of acc.
  bool events_on_console = false;

  /// Every setting with its origin, for `--dry_run`.
  Settings settings = {};
  /// What engine was found and what its values became, one line; empty: none gave any.
  std::string engine = {};
  /// Remarks for the user, one line each.
  std::vector<std::string> notes = {};
  /// Reasons why the job cannot be started on this machine (no such program, no GPU). `--dry_run` shows
  /// them; `launch` refuses to start.
  std::vector<Problem> problems = {};

  bool operator==(const LaunchPlan&) const = default;
};

}  // namespace acc::launcher
