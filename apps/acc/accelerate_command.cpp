// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/read.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/program.hpp"
#include "acc/weights/checkpoint.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "help_format.hpp"
#include "kept_accelerate.hpp"
#include "launch_command.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

/// A program of accelerate's package, and its command.
struct AccelerateName {
  std::string_view name;
  std::string_view command;
};

constexpr std::array kAccelerateNames = {AccelerateName{"accelerate", ""},
                                         AccelerateName{"accelerate-launch", "launch"},
                                         AccelerateName{"accelerate-config", "config"},
                                         AccelerateName{"accelerate-estimate-memory", "estimate-memory"},
                                         AccelerateName{"accelerate-merge-weights", "merge-weights"}};

constexpr std::array kCommands = {"config",        "estimate-memory", "env",  "launch",
                                  "merge-weights", "tpu-config",      "test", "to-fsdp2"};

/// One call of accelerate.
struct AccelerateCall {
  /// The command and its arguments.
  std::vector<std::string> words = {};
  /// The Python that would have run accelerate, if the call names it.
  std::string python = {};
  KeptAccelerate kept;
  Environment environment = {};
};

// Exit code 1: there a Python that fails ends with it, whatever the reason is.
Error as_failure(const Error& error) {
  return Error(ErrorKind::system, in_words_of(kAccelerate, error.problems()));
}

std::vector<std::string> launch_words(const AccelerateCall& call, std::vector<std::string> words) {
  if (!call.python.empty() && !call.environment.contains("PYTHON_EXEC"))
    words.insert(words.begin(), {"--python", call.python});
  return words;
}

bool is_for_sagemaker(const ConfigText& config) {
  return kind_of(parse_config(config.text, config.path, FileRules::accelerate).values) ==
         ConfigKind::sagemaker;
}

int launch_as_accelerate(const AccelerateCall& call, std::vector<std::string> words) {
  words = launch_words(call, std::move(words));
  const bool has_program = !parse_command_line(words, Dialect::launch).program.empty();
  LaunchCall launch{.words = std::move(words),
                    .program = "accelerate launch",
                    .environment = call.environment,
                    .replaced = kAccelerate};
  launch.check_config = [&](const ConfigText& config) {
    if (is_for_sagemaker(config)) call.kept.become_or_refuse(call.words, "acc starts no jobs of SageMaker");
  };
  try {
    return launch_command(std::move(launch));
  } catch (const Error& error) {
    // A missing program is an error of the command line.
    throw has_program ? as_failure(error) : Error(error.kind(), in_words_of(kAccelerate, error.problems()));
  }
}

Python python_of(const AccelerateCall& call) {
  return find_python(call.python, call.environment, kind_of_file,
                     caller_under_name(program_path(), kAccelerate));
}

fs::path script_of_test(const AccelerateCall& call) {
  const Python python = python_of(call);
  if (python.problem) throw Error(ErrorKind::system, {*python.problem});
  constexpr const char* kProgram =
      "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n"
      "from importlib.util import find_spec\nspec = find_spec('accelerate')\n"
      "print('\\n' + (spec.origin if spec else ''))";
  const auto output = run_command({python.file.string(), "-c", kProgram}, call.environment, {});
  const std::string origin(trim(output ? split(trim(output->text), '\n').back() : ""));
  fs::path script = fs::path(origin).parent_path() / "test_utils" / "scripts" / "test_script.py";
  if (!origin.empty() && fs::exists(script)) return script;
  throw Error({.kind = ErrorKind::system,
               .what = "has no accelerate, which has the script of accelerate's test",
               .where = python.file.string(),
               .hint = "`acc test` runs acc's own"});
}

int test_as_accelerate(const AccelerateCall& call, const std::string& config_file) {
  std::vector<std::string> words;
  if (!config_file.empty()) words = {"--config_file", config_file};
  words.push_back(script_of_test(call).string());
  const int code = launch_as_accelerate(call, words);
  if (code == 0) fmt::print("Test is a success! You are ready for your distributed training!\n");
  return code;
}

// A name that is no file is one of the hub, which accelerate asks.
fs::path model_or_hub(const AccelerateCall& call, const std::string& name) {
  if (fs::exists(name)) return name;
  if (call.kept.exists()) call.kept.become(call.words);
  try {
    return find_model(name, call.environment);
  } catch (const Error&) {
    throw KeptAccelerate::refusal(name, "is neither a folder nor in the hub's cache, acc asks no hub");
  }
}

void add_test_of_accelerate(CLI::App& app, int& code, const AccelerateCall& call) {
  const auto file = std::make_shared<std::string>();
  CLI::App* test = app.add_subcommand("test", "Run accelerate's own test of a training with the config");
  refuse_empty(
      test->add_option("--config_file,--config-file", *file, "The config file (default: the default one)"));
  test->callback([file, &call, &code] { code = test_as_accelerate(call, *file); });
}

// Pickles are all that acc does not write.
bool asks_for_pickles(const std::vector<std::string>& words) {
  return words.front() == "merge-weights" && (std::ranges::count(words, "--unsafe_serialization") > 0 ||
                                              std::ranges::count(words, "--unsafe-serialization") > 0);
}

int run_command_of_accelerate(AccelerateCall& call) {
  CLI::App app("The commands of accelerate, done by acc", "accelerate");
  app.formatter(help_format());
  app.require_subcommand(1);
  int code = 0;
  add_config_command(app, code, CommandSet::accelerate);
  add_estimate_command(app, code, [&](const std::string& name) { return model_or_hub(call, name); });
  add_env_command(app, code, [&] { return python_of(call); });
  app.add_subcommand("launch", "Start a program on one worker per device (see accelerate launch --help)");
  add_merge_command(app, code);
  add_tpu_config_command(app, code);
  add_test_of_accelerate(app, code, call);
  add_to_fsdp2_command(app, code);
  add_version_flag(app);
  if (call.words.empty()) {
    fmt::print("{}", app.help());
    return exit_code(ErrorKind::system);
  }
  const std::vector<std::string> words = with_whole_options(app, call.words);
  if (call.kept.exists() && asks_for_pickles(words)) call.kept.become(words);
  try {
    parse_words(app, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw usage_error(app, words, error);
  } catch (const Error& error) {
    throw as_failure(error);
  }
  return code;
}

// `--python FILE` before the command, with `--module` behind it for `python -m`.
AccelerateCaller take_caller(std::vector<std::string>& words) {
  AccelerateCaller caller{.path = program_path()};
  if (words.size() < 2 || words[0] != "--python") return caller;
  caller.python = words[1];
  caller.as_module = words.size() > 2 && words[2] == "--module";
  words.erase(words.begin(), words.begin() + (caller.as_module ? 3 : 2));
  return caller;
}

}  // namespace

std::vector<std::string> accelerate_names() {
  std::vector<std::string> names;
  for (const AccelerateName& row : kAccelerateNames) names.emplace_back(row.name);
  return names;
}

std::optional<std::vector<std::string>> accelerate_words(const std::string& name,
                                                         const std::vector<std::string>& words) {
  const auto row = std::ranges::find(kAccelerateNames, name, &AccelerateName::name);
  if (row == kAccelerateNames.end()) return std::nullopt;
  std::vector<std::string> result = words;
  if (!row->command.empty()) result.insert(result.begin(), std::string(row->command));
  return result;
}

int accelerate_command(std::vector<std::string> words, Environment environment) {
  const AccelerateCaller caller = take_caller(words);
  const KeptAccelerate kept(caller, environment);
  AccelerateCall call{.words = std::move(words),
                      .python = caller.python,
                      .kept = kept,
                      .environment = std::move(environment)};
  if (call.words.empty() || call.words[0].starts_with('-')) return run_command_of_accelerate(call);
  if (std::ranges::find(kCommands, call.words[0]) == kCommands.end())
    call.kept.become_or_refuse(call.words, "acc knows no such command of accelerate");
  if (call.words[0] == "launch")
    return launch_as_accelerate(call, {call.words.begin() + 1, call.words.end()});
  return run_command_of_accelerate(call);
}

void describe_accelerate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("accelerate", "Do what accelerate does, by its rules (see acc accelerate --help)");
  for (const char* name : kCommands) command->add_subcommand(name, "");
}

}  // namespace acc::launcher
