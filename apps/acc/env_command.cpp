// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/cli/environment_report.hpp"
#include "acc/cli/host_facts.hpp"
#include "acc/config/defaults.hpp"
#include "acc/plan/program.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// Finds LibTorch as the build does: the torch of Python, else that of scripts/quickstart.
fs::path find_libtorch(const std::vector<fs::path>& site_packages, const Environment& environment) {
  std::vector<fs::path> candidates;
  for (const fs::path& folder : site_packages) candidates.push_back(folder / "torch");
  const fs::path cache = environment.get("XDG_CACHE_HOME", environment.get("HOME") + "/.cache");
  candidates.push_back(cache / "acc" / "libtorch-2.11.0" / "torch");
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate / "lib" / "libtorch_cpu.so")) return candidate;
  }
  return {};
}

// By Python itself, which also knows PYTHONPATH, .pth files and those of the user.
std::vector<fs::path> search_path(const fs::path& python, const Environment& environment) {
  constexpr const char* kProgram =
      "import sys\nif sys.path[:1] == ['']: del sys.path[0]\nprint('\\n' + '\\n'.join(sys.path))";
  constexpr std::chrono::seconds kLimit(10);
  const auto output = run_command({python.string(), "-c", kProgram}, environment, {.time = kLimit});
  std::vector<fs::path> folders;
  for (const std::string& line : split(output ? output->text : "", '\n')) {
    if (fs::path(line).is_absolute()) folders.emplace_back(line);
  }
  // A Python that does not start.
  std::ranges::copy(site_packages(python), std::back_inserter(folders));
  return folders;
}

void show_environment(const std::string& named, const std::function<Python()>& find) {
  const Environment environment = Environment::of_process();
  const fs::path python = find().file;
  const std::vector<fs::path> folders =
      python.empty() ? std::vector<fs::path>() : search_path(python, environment);
  EnvironmentFacts facts{.version = version_and_commit(),
                         .program = program_folder() / "acc",
                         .python = python,
                         .packages = installed_packages(folders),
                         .libtorch = find_libtorch(folders, environment),
                         .compiler = ACC_COMPILER,
                         .scheduler = scheduler_name(environment),
                         .numa = numa_nodes("/sys/devices/system/node"),
                         .machine = probe_machine(true),
                         .config_is_default = named.empty()};
  if (!named.empty()) {
    facts.config = read_config(named);
  } else if (const auto file = find_default_config(environment)) {
    facts.config = read_config(*file);
  }
  fmt::print("{}", environment_report(facts));
}

}  // namespace

void add_env_command(CLI::App& app, int& code, std::function<Python()> find) {
  CLI::App* env = app.add_subcommand("env", "Show what a bug report needs: versions, devices, the config");
  const auto file = std::make_shared<std::string>();
  refuse_empty(
      env->add_option("--config_file,--config-file", *file, "The config file (default: the default one)"));
  env->callback([file, find = std::move(find), &code] {
    show_environment(*file, find);
    code = 0;
  });
}

}  // namespace acc::launcher
