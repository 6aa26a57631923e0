// SPDX-License-Identifier: Apache-2.0
#include "env_command.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "acc/base/files.hpp"
#include "acc/config/environment_report.hpp"
#include "acc/config/paths.hpp"
#include "acc/plan/program.hpp"

namespace acc {
namespace {

void show_environment(const std::string& named) {
  const Environment environment = Environment::of_process();
  EnvironmentFacts facts{.version = ACC_VERSION,
                         .program = program_folder() / "acc",
                         .python = find_python("", environment, kind_of_file).file,
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
  CLI::App* env = app.add_subcommand("env", "Tell what a bug report needs: versions, devices, the config");
  const auto file = std::make_shared<std::string>();
  env->add_option("--config_file,--config-file", *file, "The config file (otherwise the default one)");
  env->callback([file, &code] {
    show_environment(*file);
    code = 0;
  });
}

}  // namespace acc
