// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/plan/accelerate_environment.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/engine_values.hpp"
#include "acc/plan/flag_grammars.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/line_template.hpp"
#include "acc/plan/memory_checkpoints.hpp"
#include "acc/plan/numa_binding.hpp"
#include "acc/plan/other_launchers.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/preload.hpp"
#include "acc/plan/rendezvous.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/visible_devices.hpp"
#include "acc/plan/watch.hpp"

namespace acc::launcher {
namespace {

void refuse_both(const Settings& settings, SettingId one, SettingId other) {
  fail("", fmt::format("{} and {} exclude each other", settings.origin(one), settings.origin(other)),
       "give one of them");
}

// Scripts for torch.distributed.launch expect --local-rank before their own arguments.
void add_local_rank(const Settings& settings, std::size_t arguments, LaunchPlan& plan) {
  if (settings[key::use_env] && !settings[key::legacy_launch])
    fail(settings.origin(key::use_env), "is valid only with --legacy-launch");
  if (!settings[key::legacy_launch] || settings[key::use_env]) return;
  if (settings[key::no_python]) {
    fail(settings.origin(key::no_python), "--legacy-launch passes --local-rank to Python programs only",
         "with --use-env they read LOCAL_RANK");
  }
  plan.worker_command.insert(plan.worker_command.end() - static_cast<std::ptrdiff_t>(arguments),
                             "--local-rank=${local_rank}");
  plan.notes.emplace_back(
      "--legacy-launch passes --local-rank, which is deprecated: scripts should read LOCAL_RANK, with "
      "--use-env");
}

WorkerProgram choose_program(const LaunchInputs& inputs, Settings& settings, LaunchPlan& plan) {
  if (inputs.command_line.program.empty()) {
    fail("", "the following arguments are required: training_script",
         fmt::format("as in `acc {} train.py --lr 0.1`",
                     inputs.dialect == Dialect::launch ? "launch" : "run"));
  }
  const ProgramRequest request{
      .words = inputs.command_line.program,
      .after_switch = inputs.command_line.switch_before_program,
      .module = settings[key::module],
      .no_python = settings[key::no_python],
      .run_path = settings[key::run_path],
      .python = settings[key::python],
      .unbuffered = plan.launcher != Launcher::simple,
      .caller = inputs.caller,
      .is_python_script = inputs.is_python_script,
  };
  if (request.module && request.no_python && !request.run_path)
    refuse_both(settings, key::module, key::no_python);
  const WorkerProgram program = find_program(request, inputs.environment, inputs.file_kind);
  plan.worker_command = program.command;
  plan.program = program.file;
  if (program.problem) plan.problems.push_back(*program.problem);
  if (!program.python_origin.empty() && !program.problem)
    settings.set(key::python, plan.program.string(), program.python_origin);
  if (request.run_path) {
    plan.notes.push_back(settings.origin(key::run_path) +
                         ": each worker is a separate Python process that runs the file; nothing is forked");
  }
  add_local_rank(settings, request.words.size() - 1, plan);
  return program;
}

// Python would find the end of a script that was read before, and end with success. Empty: it is read once.
std::string repeated_readers(int workers, const Settings& settings, const LaunchPlan& plan) {
  if (workers > 1) return fmt::format("{} workers need it", workers);
  if (plan.max_restarts > 0)
    return fmt::format("a restart ({}) would need it again", settings.origin(key::max_restarts));
  if (plan.rendezvous.min_nodes < plan.rendezvous.max_nodes)
    return "a node that joins or leaves restarts the workers, which would need it again";
  return {};
}

// Workers of hosts read /dev/null, and Python would find an empty script there, and end with success.
bool lacks_its_input(const WorkerProgram& program, std::string_view script, const LaunchPlan& plan) {
  if (!plan.has_client || !program.is_for_python()) return false;
  return script == "-" ? program.read_once
                       : script == "/dev/stdin" || script == "/dev/fd/0" || script == "/proc/self/fd/0";
}

void refuse_unreadable_script(const WorkerProgram& program, const std::string& script,
                              const std::string& readers, LaunchPlan& plan) {
  constexpr const char* kHint = "write the script into a file";
  if (lacks_its_input(program, script, plan)) {
    plan.problems.push_back(
        {.what = "workers on hosts have no standard input", .where = script, .hint = kHint});
    return;
  }
  if (!program.read_once || readers.empty()) return;
  plan.problems.push_back({.what = "can be read only once, but " + readers, .where = script, .hint = kHint});
}

OutputPlan plan_output(const LaunchInputs& inputs, Settings& settings, std::vector<std::string>& notes) {
  constexpr auto kTemplate = key::log_line_prefix_template;
  constexpr std::string_view kTemplateVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  if (const auto text = inputs.environment.find(kTemplateVariable); text && !settings.given(kTemplate))
    settings.set(kTemplate, *text, std::string(kTemplateVariable));
  const auto ranks = [&](SettingKey<std::string> filter) {
    return parse_ranks(settings[filter], settings.origin(filter));
  };
  OutputPlan output;
  output.redirects = parse_stream_map(settings[key::redirects], settings.origin(key::redirects));
  output.tee = parse_stream_map(settings[key::tee], settings.origin(key::tee));
  output.local_ranks_filter = ranks(key::local_ranks_filter);
  output.ranks_filter = ranks(key::ranks_filter);
  output.duplicate_stdout_filters = parse_words(settings[key::duplicate_stdout_filters]);
  output.duplicate_stderr_filters = parse_words(settings[key::duplicate_stderr_filters]);
  output.line_prefix_template = settings[kTemplate];
  if (const auto unknown = unknown_names(output.line_prefix_template); !unknown.empty())
    notes.push_back(
        fmt::format("{}: ${{{}}} is not a name that it knows, and stays as it is; those are role_name, "
                    "rank, local_rank, group_rank, hostname and attempt",
                    settings.origin(kTemplate), unknown.front()));
  output.log_timestamps = settings[key::log_timestamps];
  output.log_dir = settings[key::log_dir];
  output.no_logs = output.log_dir == "/dev/null";
  return output;
}

// A console that would show no rank. torchrun takes such a list of local ranks, and several nodes may have
// different numbers of workers.
void check_filters(const Settings& settings, LaunchPlan& plan) {
  if (plan.delegated || plan.rendezvous.max_nodes > 1) return;
  const int workers = plan.nproc_per_node;
  const auto shows_none = [&](const std::vector<int>& ranks) {
    return !ranks.empty() && std::ranges::all_of(ranks, [&](int rank) { return rank >= workers; });
  };
  if (const auto& ranks = plan.output.ranks_filter; shows_none(ranks))
    fail(settings.origin(key::ranks_filter), missing_rank_text(ranks.front(), workers));
  if (const auto& ranks = plan.output.local_ranks_filter; shows_none(ranks))
    plan.notes.push_back(fmt::format("{}: {}, and the console shows none",
                                     settings.origin(key::local_ranks_filter),
                                     missing_rank_text(ranks.front(), workers)));
}

// torchrun's handlers. Scripts may abbreviate --event-log-handler as --event-log, so both flags accept
// them.
void choose_event_outputs(const Settings& settings, LaunchPlan& plan) {
  const auto is_handler = [](const std::string& word) {
    return word == "null" || word == "console" || word == "dynamic_rendezvous";
  };
  const std::string handler = settings[key::event_log_handler];
  if (!is_handler(handler)) {
    fail(settings.origin(key::event_log_handler), "'" + handler + "' is not a handler of events",
         "null, console or dynamic_rendezvous; --event-log names a file");
  }
  const std::string file = settings[key::event_log];
  plan.events_on_console = handler == "console" || file == "console";
  if (!is_handler(file)) plan.event_log = file;
}

// The devices in the mask `name` that the job may use: those that gpu_ids select, else those that are
// inherited.
std::optional<std::string> offered_devices(const LaunchInputs& inputs, const Settings& settings,
                                           const LaunchPlan& plan, const std::string& name) {
  if (auto selected = plan.environment.find(name)) return selected;
  const auto inherited = inputs.environment.find(name);
  if (!plan.environment.contains("CUDA_VISIBLE_DEVICES")) return inherited;
  return select_devices(settings[key::gpu_ids], name, inherited, settings.origin(key::gpu_ids));
}

void assign_devices(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  plan.virtual_local_rank = settings[key::virtual_local_rank];
  const bool isolate = settings[key::isolate_gpus];
  // ROCm takes its own variable first, and so does torchrun 2.15.
  plan.masks_hip = !inputs.environment.get("HIP_VISIBLE_DEVICES").empty();
  const std::string name = plan.masks_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  const std::optional<std::string> offered = offered_devices(inputs, settings, plan, name);
  // torchrun's --virtual-local-rank does not count the GPUs.
  const auto gpus = isolate ? std::optional(inputs.machine.gpus.size()) : std::nullopt;
  if (!plan.virtual_local_rank && !isolate) {
    if (plan.nproc_per_node > 1 && offered && offered->find("MIG-") != std::string::npos)
      plan.notes.push_back(
          fmt::format("CUDA_VISIBLE_DEVICES={}: CUDA shows a process one MIG device, the first; "
                      "--isolate-gpus gives each "
                      "worker its own",
                      *offered));
    return;
  }
  // A task that sees one device has its own; otherwise the tasks of a node share what they see.
  const bool shares = plan.task && !(offered && devices_of_mask(*offered).size() == 1);
  const int first_device = shares ? plan.task->local_rank : 0;
  plan.device_of_rank =
      device_of_each_worker(offered, name, gpus, first_device + plan.nproc_per_node,
                            settings.origin(isolate ? key::isolate_gpus : key::virtual_local_rank));
  plan.device_of_rank.erase(plan.device_of_rank.begin(), plan.device_of_rank.begin() + first_device);
}

// A task of an engine is one of the workers that share the node, unless the engine bound it to its own CPUs.
void bind_to_cpus(const LaunchInputs& inputs, const Settings& settings, const JobShape& shape,
                  LaunchPlan& plan) {
  plan.cpus_of_rank = decide_numa_binding(inputs, settings, plan.environment,
                                          shape.copies_on_machine * plan.nproc_per_node, !shape.use_cpu);
  if (shape.copies_on_machine == 1 || plan.cpus_of_rank.empty()) return;
  plan.cpus_of_rank = {plan.cpus_of_rank.at(static_cast<std::size_t>(plan.task->local_rank))};
}

// The tasks of an engine count as machines of one worker each, unless the engine bound each to its own CPUs.
JobShape shape_with(const EngineValues& engine, const LaunchInputs& inputs, Settings& settings) {
  std::optional<int> max_gpus;
  if (engine.engine.gpus) max_gpus = engine.engine.gpus->value;
  JobShape shape = decide_shape(inputs, settings, max_gpus);
  // Hosts may have different numbers of workers.
  if (inputs.host && inputs.host->all_slots)
    settings.set(key::num_processes, inputs.host->all_slots->value, inputs.host->all_slots->origin);
  if (!engine.task) return shape;
  const bool bound = inputs.machine.allowed_cpus < inputs.machine.online_cpus;
  if (!bound) shape.copies_on_machine = engine.task->local_size;
  if (engine.engine.num_nodes)
    settings.set(key::num_machines, engine.engine.num_nodes->value, engine.engine.num_nodes->origin);
  return shape;
}

// What flags and variables say, as readers of config files do. Those with a meaning of their own have been
// checked where they count, and have texts of their own: a rendezvous that gives ranks and ports ignores
// these two.
void refuse_values_out_of_range(const Settings& settings) {
  for (const SettingSpec& spec : schema()) {
    const Value value = settings.setting(spec.id).value;
    const bool is_checked = spec.id == key::machine_rank || spec.id == key::main_process_port;
    if (!settings.is_explicit(spec.id) || is_checked || !value.is_number_integer()) continue;
    if (const auto problem = range_problem(spec, value.get<std::int64_t>()))
      fail(settings.origin(spec.id), *problem);
  }
}

// A script passes one when a variable of its own has no value: it expects a file or a Python of its choice.
void refuse_empty_names(const Settings& settings) {
  for (const auto& [key, hint] :
       {std::pair(key::event_log, "name a file"), std::pair(key::log_file, "name a file"),
        std::pair(key::python, "name a Python")}) {
    if (settings.given(key) && settings[key].empty()) fail(settings.origin(key), "is empty", hint);
  }
}

// torchrun takes the default of --shutdown-timeout from this variable.
void set_shutdown_timeout(const Environment& environment, Settings& settings) {
  constexpr std::string_view kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  const auto text = environment.find(kVariable);
  if (!text || settings.given(key::shutdown_timeout)) return;
  const auto seconds = parse_number(*text);
  if (!seconds) fail(std::string(kVariable), "'" + *text + "' is not a number of seconds");
  settings.set(key::shutdown_timeout, *seconds, std::string(kVariable));
}

void set_limits(const LaunchInputs& inputs, Settings& settings, LaunchPlan& plan) {
  constexpr std::int64_t kMaxRestarts = 1'000'000'000;
  const std::int64_t restarts = settings[key::max_restarts];
  if (restarts < 0 || restarts > kMaxRestarts)
    fail(settings.origin(key::max_restarts), "must be a non-negative number");
  plan.max_restarts = static_cast<int>(restarts);
  if (!(settings[key::monitor_interval] > 0))
    fail(settings.origin(key::monitor_interval), "must be a positive number of seconds");
  if (plan.dialect == Dialect::torchrun && !settings.given(key::retry_on))
    settings.set(key::retry_on, "all", "torchrun's default");
  plan.retry_on = parse_retry_on(settings[key::retry_on], settings.origin(key::retry_on));
  plan.signals_to_handle = settings[key::signals_to_handle];
  for (const int signal : parse_signals(plan.signals_to_handle, settings.origin(key::signals_to_handle)))
    plan.stop_signals.insert(signal);
  set_shutdown_timeout(plan.inherited, settings);
  plan_preemption(inputs, settings, plan);
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    if (inputs.ignored_signals.contains(signal) && !handled_signals(plan).contains(signal))
      plan.ignored_signals.insert(signal);
  }
  const auto seconds = [&](SettingKey<double> time) {
    const double value = settings[time];
    if (value < 0 || value > 1e9) fail(settings.origin(time), "must be a non-negative number of seconds");
    return to_milliseconds(value);
  };
  plan.min_uptime = seconds(key::min_uptime);
  if (const std::int64_t in_vain = settings[key::restarts_without_progress].value_or(0); in_vain != 0) {
    if (in_vain < 0) fail(settings.origin(key::restarts_without_progress), "must be a non-negative number");
    if (plan.rendezvous.store_file)
      fail(settings.origin(key::restarts_without_progress),
           "no node decides on restarts where nodes meet in a file (store_type=file)");
    plan.restarts_without_progress = static_cast<int>(std::min(in_vain, kMaxRestarts));
    if (restarts > 0 && in_vain >= restarts)
      plan.notes.push_back(
          fmt::format("{} has no effect: there are no more restarts than {} (--max-restarts)",
                      settings.origin(key::restarts_without_progress), restarts));
  }
  plan.shutdown_timeout = seconds(key::shutdown_timeout);
  plan.pid_namespace = settings[key::pid_namespace];
}

// Says when temporary files go elsewhere than expected; empty: they do not.
std::string note_temporary_folder(const LaunchInputs& inputs) {
  const Environment& environment = inputs.environment;
  const std::filesystem::path folder = inputs.temporary_folder.value_or("/tmp");
  const std::string tmpdir = environment.get("TMPDIR");
  const bool by_others = !environment.get("TEMP").empty() || !environment.get("TMP").empty();
  const std::filesystem::path expected =
      tmpdir.empty() ? std::filesystem::path("/tmp") : inputs.folder / tmpdir;
  if (folder == expected || (tmpdir.empty() && by_others)) return {};
  return fmt::format("{} cannot be written: temporary files go to {}",
                     tmpdir.empty() ? "/tmp" : "TMPDIR (" + tmpdir + ")", folder.string());
}

// torchrun 2.15 ends the workers when one of them waits in the kernel (state D) for so long. acc watches what
// all ranks do, since a worker in that state cannot be killed, and what it waits for may be a slow disk.
std::string note_uninterruptible_timeout(const Environment& environment) {
  constexpr std::string_view kVariable = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
  if (parse_number(environment.get(kVariable)).value_or(0) <= 0) return {};
  return fmt::format("{} has no effect: --hang-timeout and --on-hang notice workers that stand still",
                     kVariable);
}

// The path of the file timer, from torchrun's variables.
std::filesystem::path choose_timer_file(const LaunchInputs& inputs) {
  const Environment& environment = inputs.environment;
  if (environment.get("TORCHELASTIC_ENABLE_FILE_TIMER") != "1") return {};
  if (const auto named = environment.find("TORCHELASTIC_TIMER_FILE")) return *named;
  return inputs.temporary_folder.value_or("/tmp") / ("watchdog_timer_" + inputs.random_id);
}

void refuse_plug_ins(const Settings& settings) {
  const std::string specs = settings[key::logs_specs];
  if (specs.empty() || specs == "default") return;
  fail(settings.origin(key::logs_specs), "'" + specs + "' is a Python plug-in, which acc cannot load",
       "use --redirects, --tee and --log-dir to direct the output");
}

// Plans a single worker: the other launcher.
void delegate(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings, LaunchPlan& plan) {
  OtherLauncher launcher = shape.launcher == Launcher::deepspeed ? deepspeed_command(inputs, shape, settings)
                           : shape.launcher == Launcher::tpu     ? tpu_command(inputs, settings)
                           : shape.launcher == Launcher::tpu_pod
                               ? tpu_pod_command(inputs, settings)
                               : mpi_command(inputs, shape, settings, plan.worker_command);
  plan.delegated = true;
  plan.worker_command = std::move(launcher.command);
  plan.program = std::move(launcher.file);
  if (launcher.problem) plan.problems.push_back(*launcher.problem);
  plan.num_machines = 1;
  plan.machine_rank = 0;
  plan.nproc_per_node = 1;
  if (shape.launcher == Launcher::deepspeed) plan.deepspeed_env = plan.environment.to_strings();
  if (shape.launcher == Launcher::simple && inputs.open_mpi)
    plan.environment.overlay(open_mpi_environment(plan.environment, inputs.environment));
}

// mpirun, pdsh and the like start the workers of all machines, so each copy of acc would start the whole job.
void refuse_copies(const Engine& engine, const JobShape& shape, const Settings& settings) {
  if (!shape.delegated || !engine.has_others()) return;
  if (settings[key::deepspeed_multinode_launcher] == "nossh") return;
  fail("",
       fmt::format("{} started acc {} times ({}), and each would start a launcher of {} of its own",
                   engine.name, engine.size->value, engine.size->origin, word_of(shape.distributed_type)),
       engine.family == EngineFamily::hosts
           ? "drop " + engine.name + "; for DeepSpeed --deepspeed_multinode_launcher standard"
           : "start acc once with --engine none; for DeepSpeed --deepspeed_multinode_launcher standard");
}

HangPlan plan_hang(const Settings& settings) {
  const double seconds = settings[key::hang_timeout];
  if (seconds < 0 || seconds > 1e9)
    fail(settings.origin(key::hang_timeout), "must be a number of seconds, or 0 for never");
  for (const SettingId id : {SettingId(key::on_hang), SettingId(key::hang_watch)}) {
    if (seconds == 0 && settings.given(id))
      fail(settings.origin(id), "needs a hang timeout", "--hang-timeout SECONDS");
  }
  return {.timeout = to_milliseconds(seconds),
          .action = settings[key::on_hang],
          .watch = settings[key::hang_watch]};
}

// Between machines the checks meet in the store that the agents of torch 2.6 and later, and acc, serve.
Preflight plan_preflight(const Settings& settings, const LaunchPlan& plan) {
  if (!settings[key::preflight]) return Preflight::none;
  const bool several = plan.rendezvous.max_nodes > 1;
  if (several && (!plan.use_agent_store || plan.rendezvous.agents != TorchAgents::v2_6))
    fail(settings.origin(key::preflight), "needs a store that acc serves, and here a worker or torchrun does",
         "leave out torch_version and TORCH_DISABLE_SHARE_RDZV_TCP_STORE, or check with `acc test --nodes` "
         "before");
  return Preflight::before_workers;
}

}  // namespace

bool needs_gpus(Dialect dialect, const Settings& settings) {
  // Under accelerate's rules the GPUs determine the distributed type even if the number of processes is
  // given.
  if (dialect == Dialect::launch) return !(settings.is_explicit(key::use_cpu) && settings[key::use_cpu]);
  const std::string workers(trim(settings[key::nproc_per_node]));
  return workers == "gpu" || workers == "auto" || settings[key::isolate_gpus] ||
         settings.given(key::numa_binding);
}

// In this order: flags, ACC_LOG_LEVEL, LOGLEVEL (torchrun's variable).
log::Options choose_log(const LaunchInputs& inputs, const Settings& settings) {
  log::Options log = {.file = settings[key::log_file], .pattern = settings[key::log_pattern]};
  log.level = log::level_of(inputs.environment);
  if (settings[key::quiet]) log.level = log::Level::warn;
  if (settings.given(key::log_level)) log.level = log::parse_level(settings[key::log_level], "--log-level");
  return log;
}

LaunchPlan resolve(const LaunchInputs& inputs) {
  return resolve(inputs, Settings(inputs));
}

LaunchPlan resolve(const LaunchInputs& inputs, Settings settings) {
  refuse_empty_names(settings);
  const EngineValues engine = ask_engine(inputs, settings);
  const JobShape shape = shape_with(engine, inputs, settings);
  LaunchPlan plan;
  plan.dialect = inputs.dialect;
  plan.launcher = shape.launcher;
  plan.sets_ranks = shape.sets_ranks;
  plan.nproc_per_node = shape.nproc_per_node;
  plan.num_machines = shape.num_machines;
  plan.machine_rank = shape.machine_rank;
  plan.task = engine.task;
  plan.has_client = inputs.host.has_value();
  plan.inherited = inputs.environment;
  plan.inherited.erase(kSecretVariable);
  plan.role = settings[key::role];
  if (inputs.dialect == Dialect::launch) plan.environment = accelerate_environment(inputs, shape, settings);
  if (shape.distributed_type != DistributedType::xla)
    plan.environment.overlay(thread_environment(inputs, shape, settings));
  // Otherwise programs on libacc would ask the engine themselves.
  if (settings.given(key::engine) && settings[key::engine] == "none")
    plan.environment.set("ACC_ENGINE", "none");
  plan.notes = settings.notes();
  plan.notes.insert(plan.notes.end(), engine.notes.begin(), engine.notes.end());
  plan.notes.insert(plan.notes.end(), shape.notes.begin(), shape.notes.end());
  plan.problems = shape.problems;
  plan.problems.insert(plan.problems.end(), engine.problems.begin(), engine.problems.end());
  if (shape.distributed_type == DistributedType::deepspeed) {
    for (Problem& problem : deepspeed_problems(settings)) plan.problems.push_back(std::move(problem));
  }
  if (inputs.dialect == Dialect::launch) {
    for (std::string& note : notes_on_replaced(inputs, settings, plan.environment))
      plan.notes.push_back(std::move(note));
  }
  for (const std::string& note :
       {note_temporary_folder(inputs), note_uninterruptible_timeout(inputs.environment)}) {
    if (!note.empty()) plan.notes.push_back(note);
  }
  const WorkerProgram program = choose_program(inputs, settings, plan);
  refuse_copies(engine.engine, shape, settings);
  if (shape.delegated) {
    delegate(inputs, shape, settings, plan);
  } else {
    plan_rendezvous(settings, shape, inputs, plan);
    plan.engine = engine_text(engine.engine, plan);
  }
  plan_preload(inputs, settings, program, plan);
  plan_watch(settings, program, plan);
  plan_memory_checkpoints(settings, plan);
  refuse_plug_ins(settings);
  set_limits(inputs, settings, plan);
  refuse_unreadable_script(program, inputs.command_line.program.front(),
                           repeated_readers(shape.nproc_per_node, settings, plan), plan);
  plan.timer_file = choose_timer_file(inputs);
  plan.hang = plan_hang(settings);
  plan.preflight = plan_preflight(settings, plan);
  plan.output = plan_output(inputs, settings, plan.notes);
  check_filters(settings, plan);
  if (plan.task) plan.output.first_local_rank = plan.task->local_rank;
  plan.logging = choose_log(inputs, settings);
  choose_event_outputs(settings, plan);
  plan.output.observed = plan.hang.timeout.count() > 0;
  plan_debugging(inputs, settings, plan);
  assign_devices(inputs, settings, plan);
  bind_to_cpus(inputs, settings, shape, plan);
  refuse_values_out_of_range(settings);
  plan.settings = std::move(settings);
  return plan;
}

}  // namespace acc::launcher
