// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/cli/environment_report.hpp"
#include "acc/cli/host_facts.hpp"
#include "acc/config/defaults.hpp"
#include "acc/plan/program.hpp"
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

void show_environment(const std::string& named) {
  const Environment environment = Environment::of_process();
  const fs::path python = find_python("", environment, kind_of_file, {.path = program_path()}).file;
  const std::vector<fs::path> folders = python.empty() ? std::vector<fs::path>() : site_packages(python);
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

void add_env_command(CLI::App& app, int& code) {
  CLI::App* env = app.add_subcommand("env", "Show what a bug report needs: versions, devices, the config");
  const auto file = std::make_shared<std::string>();
  env->add_option("--config_file,--config-file", *file, "The config file (default: the default one)");
  env->callback([file, &code] {
    show_environment(*file);
    code = 0;
  });
}

}  // namespace acc::launcher
