// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"
#include "acc/weights/checkpoint.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "help_format.hpp"
#include "launch_command.hpp"
#include "version.hpp"

namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_torchrun(const std::string& name) {
  return name == "torchrun" || name == "acc-torchrun";
}

bool has_name_of_peer(const std::string& name) {
  return is_torchrun(name) || acc::launcher::accelerate_words(name, {});
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

int fail_output(const std::string& reason) {
  log_error(to_string(acc::Problem{.what = reason, .where = "standard output"}));
  return acc::exit_code(acc::ErrorKind::system);
}

// Output that stdio still holds is lost at the end of the process without a word.
int with_output_written(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0) return fail_output(std::generic_category().message(errno));
  return failed_before ? fail_output("cannot be written") : code;
}

bool asks_for_help(const std::string& word) {
  return word == "help" || word == "-h" || word == "--help";
}

// `acc help X` and `acc -h X` are `acc X --help`, `acc help help` is `acc --help`, and -V is --version.
std::vector<std::string> usual_form(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words[0] == "-V") words[0] = "--version";
  const auto other = std::ranges::find_if_not(words, asks_for_help);
  if (other == words.begin()) return words;
  words.erase(words.begin(), other);
  words.emplace_back("--help");
  return words;
}

int launch_as_torchrun(const std::vector<std::string>& words, const std::string& program,
                       acc::Environment environment) {
  try {
    return acc::launcher::launch_command({.words = words,
                                          .dialect = acc::launcher::Dialect::torchrun,
                                          .program = program,
                                          .environment = std::move(environment),
                                          .replaced = "torchrun"});
  } catch (const acc::Error& error) {
    throw acc::Error(error.kind(), acc::launcher::in_words_of("torchrun", error.problems()));
  }
}

// launch, run and test parse their arguments by the schema; CLI11 parses everything else.
int run(const std::string& name, const std::vector<std::string>& words, acc::Environment environment) {
  if (is_torchrun(name)) return launch_as_torchrun(words, name, std::move(environment));
  if (auto inner = acc::launcher::accelerate_words(name, words))
    return acc::launcher::accelerate_command(*std::move(inner), std::move(environment));
  if (!words.empty()) {
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "launch")
      return acc::launcher::launch_command(
          {.words = rest, .program = "acc launch", .environment = std::move(environment)});
    if (words[0] == "run")
      return acc::launcher::launch_command({.words = rest,
                                            .dialect = acc::launcher::Dialect::torchrun,
                                            .program = "acc run",
                                            .environment = std::move(environment)});
    if (words[0] == "torchrun") return launch_as_torchrun(rest, "acc torchrun", std::move(environment));
    if (words[0] == "accelerate") return acc::launcher::accelerate_command(rest, std::move(environment));
    if (words[0] == "notebook-job") return acc::launcher::notebook_job_command(rest);
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
  acc::launcher::add_config_command(app, code, acc::launcher::CommandSet::acc);
  acc::launcher::add_env_command(app, code, [&] {
    return acc::launcher::find_python("", environment, acc::launcher::kind_of_file,
                                      {.path = acc::program_path()});
  });
  acc::launcher::add_estimate_command(
      app, code, [&](const std::string& model) { return acc::launcher::find_model(model, environment); });
  acc::launcher::add_merge_command(app, code);
  acc::launcher::add_to_fsdp2_command(app, code);
  acc::launcher::add_tpu_config_command(app, code);
  acc::launcher::add_new_command(app, code);
  acc::launcher::add_compile_command(app);
  acc::launcher::add_notebook_command(app, code);
  app.add_subcommand("torchrun", "Do what torchrun does, by its rules (see acc torchrun --help)");
  acc::launcher::describe_accelerate_command(app);
  acc::launcher::add_install_commands(app, code);
  acc::launcher::add_ps_command(app, code);
  acc::launcher::add_stop_command(app, code);
  acc::launcher::add_logs_command(app, code);
  acc::launcher::add_metrics_command(app);
  acc::launcher::add_report_command(app);
  acc::launcher::add_top_command(app);
  acc::launcher::add_agent_command(app, code);
  acc::launcher::add_completion_command(app, code);
  acc::launcher::add_man_command(app, code);
  acc::launcher::add_version_flag(app);
  if (!words.empty() && !words[0].starts_with('-')) require_command(app, words[0]);
  try {
    acc::launcher::parse_words(app, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    if (words.empty()) {
      fmt::print(stderr, "{}", app.help());
      return acc::exit_code(acc::ErrorKind::usage);
    }
    throw acc::launcher::usage_error(app, words, error);
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) try {
  // Who ignores it hands that on: the kernel would then reap what acc starts, and no signal would come.
  std::signal(SIGCHLD, SIG_DFL);
  // Beyond `ulimit -f` a file is then as on a full disk: its write fails, says so, and leaves nothing behind.
  std::signal(SIGXFSZ, SIG_IGN);
  acc::Environment environment = acc::Environment::of_process();
  open_log(environment);
  const std::string name = base_name(argv[0]);
  std::vector<std::string> words = {argv + 1, argv + argc};
  if (!has_name_of_peer(name)) words = usual_form(std::move(words));
  return with_output_written(run(name, words, std::move(environment)));
} catch (const acc::Error& error) {
  for (const acc::Problem& problem : error.problems()) log_error(to_string(problem));
  return acc::exit_code(error.kind());
} catch (const std::filesystem::filesystem_error& error) {
  log_error(to_string(acc::Problem{.what = error.code().message(), .where = error.path1().string()}));
  return acc::exit_code(acc::ErrorKind::system);
} catch (const std::system_error& error) {
  // {fmt} throws what stdio could not write.
  if (std::ferror(stdout) != 0) return fail_output(error.code().message());
  log_error(std::string("internal error: ") + error.what());
  return 1;
} catch (const std::exception& error) {
  log_error(std::string("internal error: ") + error.what());
  return 1;
}
