// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/folders.hpp"
#include "acc/base/machine.hpp"
#include "acc/config/answers.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/contradictions.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/file_schema.hpp"
#include "acc/config/line_dialog.hpp"
#include "acc/config/paths.hpp"
#include "acc/config/read.hpp"
#include "acc/config/terminal_dialog.hpp"
#include "acc/config/write.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 130;

/// What was typed; the words of the commands that take some.
struct Typed {
  std::string file = {};
  std::string mixed_precision = "no";
  std::string key = {};
  std::vector<std::string> assignments = {};
  std::string answers = {};
  bool yes = false;
  bool strict = false;
};

fs::path file_to_write(const Typed& typed, const Environment& environment) {
  return typed.file.empty() ? default_config_path(environment) : fs::path(typed.file);
}

fs::path file_to_read(const Typed& typed) {
  if (!typed.file.empty()) return typed.file;
  const Environment environment = Environment::of_process();
  if (const auto file = find_default_config(environment)) return *file;
  throw Error({.kind = ErrorKind::config,
               .what = "there is no default config file",
               .where = default_config_path(environment).string(),
               .hint = "`acc config` makes one, `--config_file` names another"});
}

void print_notes(const FileConfig& config) {
  for (const Problem& note : config.notes) fmt::print("note: {}\n", to_string(note));
}

int visible_gpu_count(const Environment& environment) {
  return static_cast<int>(visible_gpus(probe_machine(true), environment).size());
}

void save(const ConfigValues& values, const fs::path& file) {
  fmt::print("\n{}\n", format_config(values, file));
  write_config(values, file);
  fmt::print("The configuration was saved at {}\n", file.string());
}

// A file for this machine, and what was typed; several processes need a type that has several.
ConfigValues without_asking(const Typed& typed, int gpus) {
  ConfigValues values = default_config(gpus, "no");
  const std::string type = values.at("distributed_type").get<std::string>();
  assign(values, typed.assignments);
  if (values.at("distributed_type") == "NO" && type == "NO" && values.at("num_processes").get<int>() > 1)
    values["distributed_type"] = gpus > 0 ? "MULTI_GPU" : "MULTI_CPU";
  const FileConfig config{.path = "this configuration", .values = values};
  if (const std::vector<Problem> problems = contradictions(config); !problems.empty())
    throw Error(ErrorKind::usage, problems);
  return values;
}

// A mistake in what was typed is told before the first question, not after the last one. The answers decide
// which kind of file it will be.
void check_assignments(const std::vector<std::string>& assignments) {
  ConfigValues sagemaker = {{"compute_environment", "AMAZON_SAGEMAKER"}};
  try {
    return assign(sagemaker, assignments);
  } catch (const Error&) {
    ConfigValues cluster;
    assign(cluster, assignments);
  }
}

// A terminal that moves its cursor; others get one line after the other.
bool can_draw(const Environment& environment) {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && environment.get("TERM") != "dumb";
}

int ask(const Typed& typed) {
  const Environment environment = Environment::of_process();
  const fs::path file = file_to_write(typed, environment);
  const int gpus = visible_gpu_count(environment);
  if (typed.yes) {
    save(without_asking(typed, gpus), file);
    return 0;
  }
  check_assignments(typed.assignments);
  Interview interview({.gpus = gpus, .folder = current_folder(), .environment = environment});
  try {
    if (!typed.answers.empty()) {
      answer_all(interview, read_answers(typed.answers));
    } else if (can_draw(environment)) {
      const bool color = environment.get("NO_COLOR").empty();
      TerminalDialog dialog(STDIN_FILENO, STDOUT_FILENO, color);
      run_interview(interview, dialog);
    } else {
      LineDialog dialog(std::cin, std::cout);
      run_interview(interview, dialog);
    }
  } catch (const Interrupted&) {
    return kInterrupted;
  }
  ConfigValues values = interview.values();
  assign(values, typed.assignments);
  save(values, file);
  return 0;
}

int write_default(const Typed& typed) {
  const Environment environment = Environment::of_process();
  const fs::path file = file_to_write(typed, environment);
  if (fs::exists(file)) {
    fmt::print("There is a configuration at {} already; it was kept.\n", file.string());
    return 0;
  }
  write_config(default_config(visible_gpu_count(environment), typed.mixed_precision), file);
  fmt::print("The configuration was saved at {}\n", file.string());
  return 0;
}

int check(const Typed& typed) {
  const ConfigReport report = inspect_config(file_to_read(typed));
  const FileConfig& config = report.config;
  std::vector<Problem> problems = report.problems.empty() ? contradictions(config) : report.problems;
  problems.insert(problems.end(), report.misspelt.begin(), report.misspelt.end());
  if (typed.strict) {
    problems.insert(problems.end(), config.notes.begin(), config.notes.end());
  } else {
    print_notes(config);
  }
  if (!problems.empty()) throw Error(ErrorKind::config, problems);
  fmt::print("{}: ok\n", config.path.string());
  return 0;
}

int show(const Typed& typed) {
  const FileConfig config = read_config(file_to_read(typed));
  fmt::print("{}", format_config(with_defaults(config.values), "shown.yaml"));
  return 0;
}

int get(const Typed& typed) {
  const Value value = find_value(read_config(file_to_read(typed)).values, typed.key);
  if (value.is_null()) return 1;
  fmt::print("{}\n", display(value));
  return 0;
}

int set(const Typed& typed) {
  const Environment environment = Environment::of_process();
  fs::path file = file_to_write(typed, environment);
  if (typed.file.empty()) file = find_default_config(environment).value_or(file);
  ConfigValues values =
      fs::exists(file) ? read_config(file).values : default_config(visible_gpu_count(environment), "no");
  assign(values, typed.assignments);
  edit_config(values, file);
  fmt::print("The configuration was saved at {}\n", file.string());
  return 0;
}

int update(const Typed& typed) {
  const FileConfig config = read_config(file_to_read(typed));
  print_notes(config);
  edit_config(with_defaults(config.values), config.path);
  fmt::print("The configuration at {} is up to date.\n", config.path.string());
  return 0;
}

int show_schema(const Typed&) {
  fmt::print("{}\n", file_schema().dump(2));
  return 0;
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help,
                      const std::shared_ptr<Typed>& typed, int& code, int (*run)(const Typed&)) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("--config_file,--config-file", typed->file,
                      "The config file (otherwise the default one)");
  command->callback([command, typed, &code, run] {
    if (command->get_subcommands().empty()) code = run(*typed);
  });
  return command;
}

}  // namespace

void add_config_command(CLI::App& app, int& code) {
  const auto typed = std::make_shared<Typed>();
  CLI::App& config =
      *add_command(app, "config", "Answer questions and write the config file", typed, code, ask);
  CLI::Option* yes =
      config.add_flag("--yes,-y", typed->yes, "Ask nothing: a file for this machine, and KEY=VALUE");
  config.add_option("--answers", typed->answers, "A file of `question: answer` lines instead of asking")
      ->excludes(yes);
  config.add_option("assignments", typed->assignments,
                    "KEY=VALUE or SECTION.KEY=VALUE, set over the answers");
  CLI::App* make = add_command(config, "default", "Write a config file for this machine without asking",
                               typed, code, write_default);
  make->add_option("--mixed_precision,--mixed-precision", typed->mixed_precision, "Precision")
      ->transform(CLI::IsMember({"no", "fp16", "bf16", "fp8"}, CLI::ignore_case));
  CLI::App* checker =
      add_command(config, "check", "Tell all that is wrong with a config file", typed, code, check);
  checker->add_option("file", typed->file, "The config file (otherwise the default one)");
  checker->add_flag("--strict", typed->strict, "Keys that have no effect are wrong too");
  add_command(config, "show", "Print the configuration with its defaults", typed, code, show);
  add_command(config, "get", "Print the value of a key", typed, code, get)
      ->add_option("key", typed->key, "KEY or SECTION.KEY")
      ->required();
  add_command(config, "set", "Change values", typed, code, set)
      ->add_option("assignments", typed->assignments, "KEY=VALUE or SECTION.KEY=VALUE; KEY= takes it out")
      ->required();
  add_command(config, "update", "Write a file of an older version as it is written today", typed, code,
              update);
  add_command(config, "schema", "Print the JSON schema of config files, for editors", typed, code,
              show_schema);
}

}  // namespace acc::launcher
