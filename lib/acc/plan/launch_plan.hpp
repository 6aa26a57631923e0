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
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/log_options.hpp"
#include "acc/config/schema.hpp"
#include "acc/plan/cpu_binding.hpp"
#include "acc/plan/rendezvous_plan.hpp"
#include "acc/plan/retry_on.hpp"
#include "acc/plan/setting.hpp"

namespace acc::launcher {

/// What happens with the standard streams of a worker; torchrun's numbers.
enum class Streams : unsigned { none = 0, out = 1, err = 2, both = 3 };

constexpr bool has(Streams streams, Streams one) {
  return (static_cast<unsigned>(streams) & static_cast<unsigned>(one)) != 0;
}

/// torchrun's `--tee` and `--redirects`: one answer for all local ranks, or one per named local rank.
struct StreamMap {
  Streams otherwise = Streams::none;
  std::map<int, Streams> of_rank = {};

  Streams of(int local_rank) const {
    const auto found = of_rank.find(local_rank);
    return found == of_rank.end() ? otherwise : found->second;
  }
  bool operator==(const StreamMap&) const = default;
};

/// Where the output of workers goes.
struct OutputPlan {
  StreamMap redirects = {};
  StreamMap tee = {};
  /// The base of the per-job log folder; empty: a new folder under TMPDIR when one is needed.
  std::filesystem::path log_dir = {};
  /// `--log-dir /dev/null`: no folders, no redirects, no error file.
  bool no_logs = false;
  /// Every stream passes through acc, so that it sees whether a rank writes.
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

/// What happens when no rank does anything for long.
enum class OnHang { report, restart, kill };

struct HangPlan {
  /// 0: nobody watches.
  std::chrono::milliseconds timeout = {};
  OnHang then = OnHang::report;
  /// Using the CPU is doing something; else only output is.
  bool cpu_counts = true;

  bool operator==(const HangPlan&) const = default;
};

/// Words in front of a rank's program: a debugger.
struct RankWrap {
  /// Absent: of every rank.
  std::optional<int> rank = {};
  std::vector<std::string> words = {};
  /// The file to execute, found and checked.
  std::filesystem::path program = {};
};

/// Everything that is decided before the first process starts.
struct LaunchPlan {
  Dialect dialect = Dialect::launch;
  /// `simple` or `elastic`: which of accelerate's launchers the job corresponds to. One process of a simple
  /// job learns no rank (accelerate's rule: the script then does not think it is distributed).
  std::string launcher = "simple";
  bool sets_ranks = true;
  /// The one worker is another launcher, which starts the workers of the job.
  bool delegated = false;

  /// argv of a worker. `$local_rank` and `${local_rank}` are expanded per worker in all but the first;
  /// `$$local_rank` stands for the text itself.
  std::vector<std::string> worker_command = {};
  /// The file to execute, found and checked.
  std::filesystem::path program = {};
  /// What acc adds for all workers on top of what it inherited.
  Environment environment = {};
  /// Lines that DeepSpeed hands to its workers on other machines, to be put into `.deepspeed_env`.
  std::vector<std::string> deepspeed_env = {};
  /// What acc inherited.
  Environment inherited = {};
  /// A process of this job by which other nodes tell this one from others of its machine; 0: the caller.
  int process = 0;

  int nproc_per_node = 1;
  int num_machines = 1;
  int machine_rank = 0;
  std::string role = "default";
  std::string run_id = "none";
  std::string master_addr = "127.0.0.1";
  /// 0: a free one, known when the store is bound.
  std::uint16_t master_port = 0;
  /// Where the store of a job of one machine listens, in numbers.
  std::vector<std::string> store_addresses = {"127.0.0.1"};
  RendezvousPlan rendezvous = {};
  /// Whether acc serves the store of the workers; otherwise their rank 0 does, on the port that is exported.
  bool use_agent_store = true;
  int max_restarts = 0;
  RetryOn retry_on = {};
  /// A failure sooner than this after the start is not worth a restart.
  std::chrono::milliseconds min_uptime = {};
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  HangPlan hang = {};
  /// All workers live in a pid namespace of the job.
  bool pid_namespace = false;
  /// The rank that gets the terminal, when it runs here; the others get no input then.
  std::optional<int> attach = {};
  std::vector<RankWrap> wraps = {};
  /// Signals that end the job; others that arrive are handed on to the workers.
  std::set<int> stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  /// What `--signals-to-handle` said, which workers see.
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  /// Where workers say by when they must be through (torchrun's file timer); empty: nowhere.
  std::filesystem::path timer_file = {};
  /// One visible device and LOCAL_RANK 0 per worker; the devices by local rank.
  bool virtual_local_rank = false;
  /// The one device that each worker sees, by local rank; empty: they see all.
  std::vector<std::string> device_of_rank = {};
  /// Where each worker runs, by local rank; empty: wherever the kernel puts it.
  std::vector<CpuBinding> cpus_of_rank = {};
  OutputPlan output = {};
  log::Options logging = {};
  /// File for what happens to the job, a line of JSON each; empty: none.
  std::filesystem::path event_log = {};
  /// The same lines on acc's standard error.
  bool events_on_console = false;

  /// Every setting with its origin, for `--dry_run`.
  std::map<std::string, Setting, std::less<>> settings = {};
  /// What the person should know, a line each.
  std::vector<std::string> notes = {};
  /// What keeps the job from being started here (no such program, no GPU). `--dry_run` shows them, `launch`
  /// refuses to start.
  std::vector<Problem> problems = {};
};

}  // namespace acc::launcher
