// SPDX-License-Identifier: Apache-2.0
#include "launch_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <system_error>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/engine.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/cli/explain.hpp"
#include "acc/cli/help.hpp"
#include "acc/cli/shell_completion.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/read.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/launch.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/engine_values.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/plan/settings.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/worker_environment.hpp"
#include "acc/script/job_script.hpp"
#include "agent_command.hpp"
#include "commands.hpp"
#include "help_format.hpp"
#include "replace_process.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

/// A command of acc in a text, and what a person types who called acc by the name of a launcher.
struct CommandWords {
  std::string_view launcher;
  std::string_view ours;
  std::string_view theirs;
};

constexpr std::array kWords = {CommandWords{kAccelerate, "acc launch", "accelerate launch"},
                               CommandWords{kAccelerate, "acc config", "accelerate config"},
                               CommandWords{kAccelerate, "acc to-fsdp2", "accelerate to-fsdp2"},
                               CommandWords{"torchrun", "acc run ", "torchrun "}};

// Not by Boost.UUID, whose generator throws where a sandbox refuses getrandom; random_number() reads
// /dev/urandom there.
std::string random_uuid() {
  const unsigned a = random_number();
  const unsigned b = random_number();
  const unsigned c = random_number();
  const unsigned d = random_number();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:04x}{:08x}", a, b >> 16U, b & 0xfffU,
                     (c >> 16U & 0x3fffU) | 0x8000U, c & 0xffffU, d);
}

bool has_true_flag(const CommandLine& command_line, SettingKey<bool> flag) {
  return value_in(command_line.flags, flag).value_or(false);
}

// Whether a flag gives sections of a config file an effect that its own type or precision does not.
bool chooses_type(const CommandLine& command_line) {
  return std::ranges::any_of(
      std::initializer_list<SettingId>{key::use_cpu, key::use_deepspeed, key::use_fsdp, key::use_megatron_lm,
                                       key::multi_gpu, key::tpu, key::mixed_precision},
      [&](SettingId flag) { return command_line.flags.contains(flag); });
}

std::optional<std::filesystem::path> choose_file(const CommandLine& command_line,
                                                 const Environment& environment) {
  if (const auto named = value_in(command_line.flags, key::config_file)) {
    require_file_name(*named, "--config_file");
    return *named;
  }
  if (has_true_flag(command_line, key::use_cpu)) return std::nullopt;
  return find_default_config(environment);
}

// Open MPI has other options than MPICH; --version tells them apart.
bool is_open_mpi(const Environment& environment) {
  constexpr std::chrono::seconds kLimit(10);
  for (const char* program : {"mpirun", "mpiexec"}) {
    const auto version = run_command({program, "--version"}, environment, {.time = kLimit});
    if (version && !version->timed_out) return version->text.find("Open MPI") != std::string::npos;
  }
  return true;
}

bool names_mpi_hosts(const LaunchInputs& inputs) {
  return inputs.command_line.flags.contains(key::mpirun_hostfile) ||
         inputs.file.contains(key::mpirun_hostfile);
}

void probe_machine_for(LaunchInputs& inputs, const Settings& settings) {
  inputs.machine = probe_machine(needs_gpus(inputs.dialect, settings));
  if (names_mpi_hosts(inputs)) inputs.open_mpi = is_open_mpi(inputs.environment);
}

// `acc` where a shell would find this program by that name, else its path.
std::string word_for_acc(const Environment& environment) {
  const std::filesystem::path own = absolute_path(program_path());
  std::error_code missing;
  return std::filesystem::equivalent(find_program("acc", environment), own, missing) ? "acc" : own.string();
}

int print_script(GatheredInputs gathered) {
  LaunchInputs& inputs = gathered.inputs;
  probe_machine_for(inputs, Settings(inputs));
  const ScriptJob job = plan_script(inputs, word_for_acc(inputs.environment), gathered.config);
  fmt::print("{}", job_script(job));
  std::vector<std::string> notes = gathered.notes;
  std::ranges::move(script_notes(job, inputs.environment), std::back_inserter(notes));
  for (const std::string& note : notes) log::write(log::Level::info, note);
  return 0;
}

// Slurm sends SIGUSR1 to every process of a job, even to one that does not run workers yet.
void survive_early_notices(const Environment& environment) {
  if (!engine_stop(environment)) return;
  ::signal(SIGUSR1, SIG_IGN);
  ::signal(SIGUSR2, SIG_IGN);
}

// From here to the end of this process its signals belong to the job: one that comes when the job has ended
// must not replace its exit code.
void keep_exit_code(const LaunchPlan& plan) {
  const sigset_t signals = signal_set_of(forwarded_signals(handled_signals(plan)));
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// The launcher itself could not start then; the workers get the Python of acc's folder or of PATH.
void note_lost_python(const std::string& launcher, GatheredInputs& gathered) {
  const std::filesystem::path kept_program = find_kept_program(absolute_path(program_path()), launcher);
  const std::filesystem::path python = kept_program.empty() ? "" : interpreter_of_script(kept_program);
  if (!python.is_absolute() || std::filesystem::exists(python)) return;
  gathered.notes.push_back(fmt::format("{}: its Python {} is gone: workers run under another one",
                                       kept_program.string(), python.string()));
}

// Makes them those of a launcher, torchrun or accelerate, whose name acc has: its Python, and its readings.
void take_name_of(const std::string& launcher, GatheredInputs& gathered) {
  gathered.replaced = launcher;
  gathered.inputs.caller = caller_under_name(program_path(), launcher);
  gathered.inputs.is_python_script = is_python_script;
  gathered.inputs.none_is_one = launcher == kAccelerate;
  if (gathered.inputs.caller.kept.empty()) note_lost_python(launcher, gathered);
}

void note_hidden_config(GatheredInputs& gathered) {
  const LaunchInputs& inputs = gathered.inputs;
  if (gathered.config || inputs.dialect != Dialect::launch) return;
  if (has_true_flag(inputs.command_line, key::use_cpu)) return;
  if (const std::string note = note_hidden_default_config(inputs.environment); !note.empty())
    gathered.notes.push_back(note);
}

GatheredInputs gather_inputs_of(CommandLine command_line, const LaunchCall& call) {
  survive_early_notices(call.environment);
  std::optional<ConfigText> config;
  if (call.dialect == Dialect::launch) config = config_text_of(command_line, call.environment);
  if (config && call.check_config) call.check_config(*config);
  GatheredInputs gathered =
      gather_inputs(std::move(command_line), call.dialect, call.environment, config, call.replaced);
  note_hidden_config(gathered);
  return gathered;
}

// What the nodes of an allocation run. Their acc is this program itself, and may not lie beside what was
// kept: they are told its Python.
std::vector<std::string> words_for_nodes(const LaunchCall& call, const LaunchInputs& inputs) {
  std::vector<std::string> words = call.words;
  const bool names_python =
      inputs.command_line.flags.contains(key::python) || inputs.environment.contains("PYTHON_EXEC");
  if (!names_python && !inputs.caller.python.empty())
    words.insert(words.begin(), {"--python", inputs.caller.python.string()});
  return words;
}

std::string command_for_nodes(const LaunchCall& call) {
  if (call.replaced == kAccelerate) return "accelerate launch";
  if (!call.replaced.empty()) return call.replaced;
  return call.dialect == Dialect::launch ? "launch" : "run";
}

void write_deepspeed_env(const LaunchPlan& plan) {
  if (plan.deepspeed_env.empty()) return;
  const std::filesystem::path file = ".deepspeed_env";
  const std::string text = std::filesystem::exists(file) ? read_file(file) : "";
  replace_file(file, with_lines(text, plan.deepspeed_env));
}

}  // namespace

std::string in_words_of(const std::string& launcher, std::string text) {
  for (const auto& [name, ours, theirs] : kWords) {
    if (name != launcher) continue;
    for (std::size_t at = text.find(ours); at != std::string::npos; at = text.find(ours, at + theirs.size()))
      text.replace(at, ours.size(), theirs);
  }
  return text;
}

std::vector<Problem> in_words_of(const std::string& launcher, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    problem.what = in_words_of(launcher, problem.what);
    problem.hint = in_words_of(launcher, problem.hint);
  }
  return problems;
}

void run_with_srun(const CommandLine& command_line, const std::string& command,
                   const std::vector<std::string>& words) {
  if (!has_true_flag(command_line, key::srun)) return;
  std::vector<std::string> words_of_acc = split(command, ' ');
  words_of_acc.insert(words_of_acc.end(), words.begin(), words.end());
  std::vector<std::string> srun =
      srun_command(Environment::of_process(), (program_folder() / "acc").string(), words_of_acc);
  if (srun.empty()) return;
  std::vector<char*> arguments;
  for (std::string& word : srun) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  replace_process(arguments[0], arguments.data());
  throw Error({.kind = ErrorKind::system,
               .what = std::generic_category().message(errno),
               .where = srun.front(),
               .hint = "--srun needs Slurm's srun on PATH"});
}

std::optional<ConfigText> config_text_of(const CommandLine& command_line, const Environment& environment) {
  const auto path = choose_file(command_line, environment);
  if (!path) return std::nullopt;
  return ConfigText{.path = *path, .text = read_file(*path)};
}

GatheredInputs gather_inputs(CommandLine command_line, Dialect dialect, Environment environment) {
  return gather_inputs_of(std::move(command_line),
                          {.dialect = dialect, .environment = std::move(environment)});
}

GatheredInputs gather_inputs(CommandLine command_line, Dialect dialect, Environment environment,
                             const std::optional<ConfigText>& config, const std::string& replaced) {
  GatheredInputs gathered = {.config = config};
  LaunchInputs& inputs = gathered.inputs;
  inputs.dialect = dialect;
  inputs.environment = std::move(environment);
  inputs.random_id = random_uuid();
  inputs.folder = current_folder();
  inputs.temporary_folder = temporary_folder(inputs.environment);
  inputs.caller = {.path = program_path()};
  inputs.ignored_signals = ignored_of({SIGUSR1, SIGUSR2});
  inputs.file_is_default = !command_line.flags.contains(key::config_file);
  if (config) {
    const FileRules rules = replaced == kAccelerate ? FileRules::accelerate : FileRules::acc;
    FileConfig file = parse_config(config->text, config->path, rules);
    if (!chooses_type(command_line))
      std::ranges::move(keys_without_effect(file), std::back_inserter(file.notes));
    if (has_true_flag(command_line, key::strict)) refuse_notes(file);
    inputs.file = file_settings(file);
    inputs.file_order = file_order(file);
    for (const Problem& note : file.notes) gathered.notes.push_back(to_string(note));
  }
  inputs.command_line = std::move(command_line);
  if (!replaced.empty()) take_name_of(replaced, gathered);
  return gathered;
}

LaunchPlan plan_of(GatheredInputs gathered) {
  LaunchInputs& inputs = gathered.inputs;
  Settings settings(inputs);
  probe_machine_for(inputs, settings);
  LaunchPlan plan = resolve(inputs, std::move(settings));
  if (const std::string assumed = assumed_text(plan); inputs.dialect == Dialect::launch && !gathered.config &&
                                                      !assumed.empty() && ::isatty(STDERR_FILENO) == 1)
    gathered.notes.push_back("there is no config file: " + assumed +
                             " (`acc config` writes one, --quiet hides this)");
  plan.notes.insert(plan.notes.begin(), gathered.notes.begin(), gathered.notes.end());
  for (std::string& note : plan.notes) note = in_words_of(gathered.replaced, std::move(note));
  return plan;
}

LaunchPlan make_plan(CommandLine command_line, Dialect dialect) {
  return plan_of(gather_inputs(std::move(command_line), dialect, Environment::of_process()));
}

int start(LaunchPlan plan) {
  if (!plan.problems.empty()) throw Error(ErrorKind::usage, plan.problems);
  log::open(plan.logging);
  // Each node says the same of the engine but for its own place, and each task the same of everything.
  const bool first = plan.machine_rank == 0;
  const auto log_note = [](const std::string& note, bool shown) {
    log::write(shown ? log::Level::info : log::Level::debug, note);
  };
  if (!plan.engine.empty()) log_note(plan.engine, first);
  for (const std::string& note : plan.notes) log_note(note, first || !plan.task);
  if (const std::string python = interpreter_text(plan); !python.empty()) log::debug("{}", python);
  write_deepspeed_env(plan);
  keep_exit_code(plan);
  return launch(std::move(plan));
}

int start_or_explain(LaunchPlan plan) {
  const auto dry_run = plan.settings[key::dry_run];
  if (!dry_run) return start(std::move(plan));
  // A path need not be UTF-8.
  const auto json = [&] { return explain_json(plan).dump(2, ' ', false, Value::error_handler_t::replace); };
  fmt::print("{}", dry_run == DryRun::json ? json() + "\n" : explain_text(plan));
  return 0;
}

int launch_command(LaunchCall call) {
  CommandLine command_line = parse_command_line(call.words, call.dialect);
  if (command_line.version) {
    fmt::print("{}\n", version_text());
    return 0;
  }
  if (command_line.help) {
    fmt::print("{}", launch_help(call.dialect, call.program, help_width(), help_scope(command_line)));
    return 0;
  }
  if (const auto shell = value_in(command_line.flags, key::print_completion)) {
    fmt::print("{}", completion(*shell, call.dialect, call.program));
    return 0;
  }
  GatheredInputs gathered = gather_inputs_of(std::move(command_line), call);
  if (gathered.inputs.command_line.flags.contains(key::print_script))
    return print_script(std::move(gathered));
  if (const auto code = launch_on_hosts(gathered, call.words)) return *code;
  run_with_srun(gathered.inputs.command_line, command_for_nodes(call),
                words_for_nodes(call, gathered.inputs));
  return start_or_explain(plan_of(std::move(gathered)));
}

}  // namespace acc::launcher
