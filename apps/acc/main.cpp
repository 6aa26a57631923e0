// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "config_command.hpp"
#include "env_command.hpp"
#include "launch_command.hpp"
#include "test_command.hpp"

namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// launch, run and test read their words by the schema's grammar; CLI11 reads everything else.
int run(const std::string& name, const std::vector<std::string>& words) {
  if (name == "torchrun" || name == "acc-torchrun")
    return acc::launch_command(words, acc::Dialect::torchrun, name);
  if (!words.empty()) {
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "launch") return acc::launch_command(rest, acc::Dialect::launch, "acc launch");
    if (words[0] == "run") return acc::launch_command(rest, acc::Dialect::torchrun, "acc run");
    if (words[0] == "test") return acc::test_command(rest);
  }
  CLI::App app("Launcher for distributed training: Python scripts and C++ programs", "acc");
  app.set_version_flag("--version", "acc " ACC_VERSION);
  app.require_subcommand(1);
  int code = 0;
  app.add_subcommand("launch", "Start a program on one worker per device (see acc launch --help)");
  app.add_subcommand("run", "The same by torchrun's rules alone (see acc run --help)");
  app.add_subcommand("test", "Check with a built-in program that distributed training works here");
  acc::add_config_command(app, code);
  acc::add_env_command(app, code);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const bool good = error.get_exit_code() == 0;
    if (good || words.empty()) {
      fmt::print("{}", good ? app.help("", CLI::AppFormatMode::Normal) : app.help());
      return good ? 0 : 2;
    }
    throw acc::Error({.what = error.what(), .hint = "acc --help"});
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(base_name(argv[0]), {argv + 1, argv + argc});
} catch (const acc::Error& error) {
  for (const acc::Problem& problem : error.problems()) fmt::print(stderr, "acc: {}\n", to_string(problem));
  return acc::exit_code(error.kind());
} catch (const std::exception& error) {
  fmt::print(stderr, "acc: internal error: {}\n", error.what());
  return 1;
}
