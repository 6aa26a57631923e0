// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/cli/dialog.hpp"
#include "acc/cli/terminal_dialog.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/document.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/interview.hpp"
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/write.hpp"
#include "acc/plan/config_check.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 130;

/// The options and arguments of `acc config` and its subcommands.
struct ConfigOptions {
  std::string file = {};
  std::string mixed_precision = "no";
  std::string key = {};
  std::vector<std::string> assignments = {};
  std::string answers = {};
  bool yes = false;
  bool strict = false;
  CommandSet rules = CommandSet::acc;
};

fs::path file_to_write(const ConfigOptions& options, const Environment& environment) {
  return options.file.empty() ? default_config_path(environment) : fs::path(options.file);
}

fs::path file_to_read(const ConfigOptions& options) {
  if (!options.file.empty()) return options.file;
  const Environment environment = Environment::of_process();
  if (const auto file = find_default_config(environment)) return *file;
  throw Error({.kind = ErrorKind::config,
               .what = "there is no default config file",
               .where = default_config_path(environment).string(),
               .hint = "create it with `acc config`, or give another with `--config_file`"});
}

void print_notes(const FileConfig& config) {
  for (const Problem& note : config.notes) fmt::print("note: {}\n", to_string(note));
}

int visible_gpu_count(const Environment& environment) {
  return static_cast<int>(visible_gpus(probe_machine(true), environment).size());
}

// Programs may read these lines: under accelerate's rules they begin as accelerate's do.
std::string saved_text(CommandSet rules, const std::string& file) {
  if (rules == CommandSet::accelerate) return "accelerate configuration saved at " + file;
  return "The configuration was saved at " + file;
}

std::string kept_text(CommandSet rules, const std::string& file) {
  if (rules == CommandSet::accelerate)
    return "Configuration already exists at " + file + ", will not override.";
  return "The configuration at " + file + " exists already and was kept.";
}

std::string updated_text(CommandSet rules, const std::string& file) {
  if (rules == CommandSet::accelerate) return "Successfully updated the configuration file at " + file + ".";
  return "The configuration at " + file + " is up to date.";
}

void save(const ConfigValues& values, const ConfigOptions& options, const fs::path& file) {
  if (options.rules == CommandSet::acc) fmt::print("\n{}\n", format_config(values, file));
  write_config(values, file);
  fmt::print("{}\n", saved_text(options.rules, file.string()));
}

// Why `check` and a launch refuse values that are valid by themselves.
std::vector<Problem> refusals(const FileConfig& config) {
  std::vector<Problem> problems = contradictions(config);
  return problems.empty() ? launch_problems(config) : problems;
}

// The same for values that are not in a file yet.
std::vector<Problem> refusals(const ConfigValues& values, const std::string& name) {
  try {
    FileConfig config = parse_config(format_config(values, "c.yaml"), name);
    config.positions.clear();
    return refusals(config);
  } catch (const Error& error) {
    return error.problems();
  }
}

// The config for this machine with the assignments. Several processes need a type for several.
ConfigValues without_asking(const ConfigOptions& options, int gpus) {
  ConfigValues values = default_config(gpus, "no");
  const auto type = value_in(values, key::distributed_type);
  assign(values, options.assignments);
  const Value processes = find_value(values, file_key(row_of(key::num_processes)));
  const bool several = processes.is_number_integer() && processes.get<std::int64_t>() > 1;
  if (type == DistributedType::no && value_in(values, key::distributed_type) == type && several)
    set_value(values, key::distributed_type,
              gpus > 0 ? DistributedType::multi_gpu : DistributedType::multi_cpu);
  const auto problems = refusals(values, "this configuration");
  if (!problems.empty()) throw Error(ErrorKind::usage, problems);
  return values;
}

ConfigValues answered_values(const Interview& interview, const ConfigOptions& options) {
  ConfigValues values = interview.values();
  assign(values, options.assignments);
  return values;
}

// Asks until the answers together are what a launch accepts: the last question is asked again.
void ask_all(Interview& interview, Dialog& dialog, const ConfigOptions& options) {
  while (true) {
    run_interview(interview, dialog);
    const auto problems = refusals(answered_values(interview, options), "these answers");
    if (problems.empty()) return;
    // No other answer could mend what was given as KEY=VALUE.
    if (refusals(interview.values(), "these answers").empty()) throw Error(ErrorKind::usage, problems);
    for (const Problem& problem : problems) dialog.show(to_string(problem));
    dialog.show("Esc goes back to the answer to change");
    interview.go_back();
  }
}

void read_all(Interview& interview, const ConfigOptions& options) {
  answer_all(interview, read_answers(options.answers));
  const auto problems = refusals(answered_values(interview, options), "these answers");
  if (!problems.empty()) throw Error(ErrorKind::config, problems);
}

// Invalid assignments are reported before the first question. The answers decide the kind of the file, so
// one kind must accept them.
void check_assignments(const std::vector<std::string>& assignments) {
  ConfigValues sagemaker;
  set_value(sagemaker, key::compute_environment, ComputeEnvironment::amazon_sagemaker);
  try {
    return assign(sagemaker, assignments);
  } catch (const Error&) {
    ConfigValues cluster;
    assign(cluster, assignments);
  }
}

// Whether the terminal can move its cursor; otherwise the dialog is line by line.
bool can_draw(const Environment& environment) {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && environment.get("TERM") != "dumb";
}

int ask(const ConfigOptions& options) {
  const Environment environment = Environment::of_process();
  const fs::path file = file_to_write(options, environment);
  const int gpus = visible_gpu_count(environment);
  if (options.yes) {
    save(without_asking(options, gpus), options, file);
    return 0;
  }
  check_assignments(options.assignments);
  Interview interview({.gpus = gpus, .folder = current_folder(), .environment = environment});
  try {
    if (!options.answers.empty()) {
      read_all(interview, options);
    } else if (can_draw(environment)) {
      const bool color = environment.get("NO_COLOR").empty();
      TerminalDialog dialog(STDIN_FILENO, STDOUT_FILENO, color);
      ask_all(interview, dialog, options);
    } else {
      LineDialog dialog(std::cin, std::cout);
      ask_all(interview, dialog, options);
    }
  } catch (const Interrupted&) {
    return kInterrupted;
  }
  save(answered_values(interview, options), options, file);
  return 0;
}

// accelerate writes JSON, which is YAML too, whatever the file is called.
void write_default_file(const ConfigValues& values, const ConfigOptions& options, const fs::path& file) {
  if (options.rules == CommandSet::acc) return write_config(values, file);
  replace_file(file, format_config(values, "default.json"));
}

int write_default(const ConfigOptions& options) {
  const Environment environment = Environment::of_process();
  const fs::path file = file_to_write(options, environment);
  if (fs::exists(file)) {
    fmt::print("{}\n", kept_text(options.rules, file.string()));
    return 0;
  }
  write_default_file(default_config(visible_gpu_count(environment), options.mixed_precision), options, file);
  fmt::print("{}\n", saved_text(options.rules, file.string()));
  return 0;
}

int check(const ConfigOptions& options) {
  ConfigReport report = inspect_config(file_to_read(options));
  FileConfig& config = report.config;
  std::vector<Problem> problems = report.problems;
  if (problems.empty()) {
    std::ranges::move(keys_without_effect(config), std::back_inserter(config.notes));
    problems = report.misspelt.empty() ? refusals(config) : contradictions(config);
  }
  problems.insert(problems.end(), report.misspelt.begin(), report.misspelt.end());
  if (options.strict) {
    problems.insert(problems.end(), config.notes.begin(), config.notes.end());
  } else {
    print_notes(config);
  }
  if (!problems.empty()) throw Error(ErrorKind::config, problems);
  fmt::print("{}: ok\n", config.path.string());
  return 0;
}

int show(const ConfigOptions& options) {
  const FileConfig config = read_config(file_to_read(options));
  fmt::print("{}", format_config(with_defaults(config.values), "shown.yaml"));
  return 0;
}

int get(const ConfigOptions& options) {
  const Value value = find_value(read_config(file_to_read(options)).values, options.key);
  if (value.is_null()) return 1;
  fmt::print("{}\n", display(value));
  return 0;
}

// Says what an edited file lost.
void edit(const ConfigValues& values, const fs::path& file) {
  if (edit_config(values, file)) return;
  log::write(
      log::Level::warn,
      fmt::format("{}: was written anew, without its comments: it has braces or aliases, which acc cannot "
                  "edit by lines",
                  file.string()));
}

int set(const ConfigOptions& options) {
  const Environment environment = Environment::of_process();
  fs::path file = file_to_write(options, environment);
  if (options.file.empty()) file = find_default_config(environment).value_or(file);
  if (!fs::exists(fs::symlink_status(file))) {
    ConfigValues checked = default_config(visible_gpu_count(environment), "no");
    assign(checked, options.assignments);
    require_replaceable(file);  // makes the folder, whose lock is asked for
  }
  const Descriptor lock = lock_folder_of(file);
  ConfigValues values = fs::exists(fs::symlink_status(file))
                            ? read_config(file).values
                            : default_config(visible_gpu_count(environment), "no");
  assign(values, options.assignments);
  edit(values, file);
  fmt::print("The configuration was saved at {}\n", file.string());
  return 0;
}

// What `config default` has written into a .yaml file becomes YAML by an update, as in accelerate.
bool becomes_yaml(CommandSet rules, const fs::path& file) {
  return rules == CommandSet::accelerate && file.extension() != ".json" &&
         trim(read_file(file, DocumentLimits::kBytes)).starts_with('{');
}

int update(const ConfigOptions& options) {
  const fs::path file = file_to_read(options);
  const Descriptor lock = lock_folder_of(file);
  const FileConfig config = read_config(file);
  print_notes(config);
  const ConfigValues values = with_defaults(config.values);
  if (becomes_yaml(options.rules, file)) {
    write_config(values, file);
  } else {
    edit(values, file);
  }
  fmt::print("{}\n", updated_text(options.rules, config.path.string()));
  return 0;
}

int show_schema(const ConfigOptions&) {
  fmt::print("{}\n", file_schema().dump(2));
  return 0;
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help,
                      const std::shared_ptr<ConfigOptions>& options, int& code,
                      int (*run)(const ConfigOptions&)) {
  CLI::App* command = parent.add_subcommand(name, help);
  refuse_empty(command->add_option("--config_file,--config-file", options->file,
                                   "The config file (default: the default one)"));
  command->callback([command, options, &code, run] {
    if (command->get_subcommands().empty()) code = run(*options);
  });
  return command;
}

}  // namespace

void add_config_command(CLI::App& app, int& code, CommandSet rules) {
  const auto options = std::make_shared<ConfigOptions>();
  options->rules = rules;
  CLI::App& config =
      *add_command(app, "config", "Answer questions and write the config file", options, code, ask);
  CLI::Option* yes = config.add_flag("--yes,-y", options->yes,
                                     "Ask no questions: use the defaults for this machine and KEY=VALUE");
  refuse_empty(config.add_option("--answers", options->answers,
                                 "A file of `question: answer` lines instead of asking"))
      ->excludes(yes);
  // There, any other word is a misspelt command.
  if (rules == CommandSet::acc)
    config.add_option("assignments", options->assignments,
                      "KEY=VALUE or SECTION.KEY=VALUE, overriding the answers");
  // There, a command has a file of its own, whichever is named before it.
  const auto inner = rules == CommandSet::acc ? options : std::make_shared<ConfigOptions>(*options);
  CLI::App* make = add_command(config, "default", "Write a config file for this machine without asking",
                               inner, code, write_default);
  make->add_option("--mixed_precision,--mixed-precision", inner->mixed_precision, "Precision")
      ->transform(CLI::IsMember({"no", "fp16", "bf16", "fp8"}, CLI::ignore_case));
  CLI::App* checker = add_command(config, "check", "Report all errors of a config file", inner, code, check);
  CLI::Option* checked =
      refuse_empty(checker->add_option("file", inner->file, "The config file (default: the default one)"));
  for (CLI::App* command : {checker, &config}) checked->excludes(command->get_option("--config_file"));
  checker->add_flag("--strict", inner->strict,
                    "Treat unknown keys of sections and keys without effect as errors");
  add_command(config, "show", "Print the configuration with its defaults", inner, code, show);
  add_command(config, "get", "Print the value of a key", inner, code, get)
      ->add_option("key", inner->key, "KEY or SECTION.KEY")
      ->required();
  add_command(config, "set", "Change values", inner, code, set)
      ->add_option("assignments", inner->assignments, "KEY=VALUE or SECTION.KEY=VALUE; KEY= removes it")
      ->required();
  add_command(config, "update", "Rewrite a config file of an older version in the current format", inner,
              code, update);
  add_command(config, "schema", "Print the JSON schema of config files, for editors", inner, code,
              show_schema);
}

}  // namespace acc::launcher
