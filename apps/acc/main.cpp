// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"
#include "commands.hpp"
#include "help_format.hpp"
#include "version.hpp"

namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void require_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) commands.push_back(command->get_name());
  if (std::ranges::find(commands, word) != commands.end()) return;
  const std::string nearest = acc::did_you_mean(word, commands);
  throw acc::Error({.what = "no such command",
                    .where = word,
                    .hint = nearest.empty() ? "acc --help shows the commands" : nearest});
}

void log_error(const std::string& text) {
  acc::log::write(acc::log::Level::error, text);
}

void open_log(const acc::Environment& environment) {
  acc::log::open({.level = acc::log::level_of(environment)});
  for (const acc::Problem& problem : acc::log::ignored_levels(environment))
    acc::log::write(acc::log::Level::warn, to_string(problem));
}

// CLI11 does not inherit the flag in subcommands.
void add_version_flag(CLI::App& app) {
  app.set_version_flag("--version", acc::launcher::version_text,
                       "Print the version and exit; with --json for programs");
  for (CLI::App* command : app.get_subcommands(nullptr)) add_version_flag(*command);
}

// launch, run and test parse their arguments by the schema; CLI11 parses everything else.
int run(const std::string& name, const std::vector<std::string>& words, acc::Environment environment) {
  if (name == "torchrun" || name == "acc-torchrun")
    return acc::launcher::launch_command(words, acc::launcher::Dialect::torchrun, name,
                                         std::move(environment));
  if (!words.empty()) {
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "launch")
      return acc::launcher::launch_command(rest, acc::launcher::Dialect::launch, "acc launch",
                                           std::move(environment));
    if (words[0] == "run")
      return acc::launcher::launch_command(rest, acc::launcher::Dialect::torchrun, "acc run",
                                           std::move(environment));
    if (words[0] == "test") return acc::launcher::test_command(rest);
  }
  if (words == std::vector<std::string>{"--version", "--json"}) {
    fmt::print("{}\n", acc::launcher::version_json());
    return 0;
  }
  CLI::App app("Launcher for distributed training: Python scripts and C++ programs", "acc");
  app.formatter(acc::launcher::help_format());
  app.require_subcommand(1);
  int code = 0;
  app.add_subcommand("launch", "Start a program on one worker per device (see acc launch --help)");
  app.add_subcommand("run", "Start a program with torchrun's options (see acc run --help)");
  acc::launcher::describe_test_command(app);
  acc::launcher::add_config_command(app, code);
  acc::launcher::add_env_command(app, code);
  acc::launcher::add_estimate_command(app, code);
  acc::launcher::add_merge_command(app, code);
  acc::launcher::add_to_fsdp2_command(app, code);
  acc::launcher::add_tpu_config_command(app, code);
  acc::launcher::add_new_command(app, code);
  acc::launcher::add_notebook_command(app, code);
  acc::launcher::add_install_torchrun_command(app, code);
  acc::launcher::add_ps_command(app, code);
  acc::launcher::add_stop_command(app, code);
  acc::launcher::add_logs_command(app, code);
  acc::launcher::add_agent_command(app, code);
  acc::launcher::add_completion_command(app, code);
  acc::launcher::add_man_command(app, code);
  add_version_flag(app);
  if (!words.empty() && !words[0].starts_with('-')) require_command(app, words[0]);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    if (words.empty()) {
      fmt::print(stderr, "{}", app.help());
      return acc::exit_code(acc::ErrorKind::usage);
    }
    throw acc::Error({.what = error.what(), .hint = "acc " + words[0] + " --help"});
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) try {
  acc::Environment environment = acc::Environment::of_process();
  open_log(environment);
  return run(base_name(argv[0]), {argv + 1, argv + argc}, std::move(environment));
} catch (const acc::Error& error) {
  for (const acc::Problem& problem : error.problems()) log_error(to_string(problem));
  return acc::exit_code(error.kind());
} catch (const std::filesystem::filesystem_error& error) {
  log_error(to_string(acc::Problem{.what = error.code().message(), .where = error.path1().string()}));
  return acc::exit_code(acc::ErrorKind::system);
} catch (const std::exception& error) {
  log_error(std::string("internal error: ") + error.what());
  return 1;
}
