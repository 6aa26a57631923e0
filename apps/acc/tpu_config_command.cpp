// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/config/defaults.hpp"
#include "acc/plan/tpu_config.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "replace_process.hpp"

namespace acc::launcher {
namespace {

struct TpuConfigOptions {
  TpuConfigRequest request = {};
  std::string config_file = {};
  bool debug = false;
};

ConfigValues read_values(const std::string& named) {
  if (!named.empty()) return read_config(named).values;
  const auto file = find_default_config(Environment::of_process());
  return file ? read_config(*file).values : ConfigValues();
}

// Replaces acc by gcloud, so that its exit code is that of acc.
[[noreturn]] void execute(std::vector<std::string> command) {
  const std::vector<char*> words = pointers_to(command);
  replace_process(words.front(), words.data());
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("cannot be started: {}", std::strerror(errno)),
               .where = command.front(),
               .hint = "it comes with the Google Cloud SDK"});
}

int run_commands(const TpuConfigOptions& options) {
  const ConfigValues config = read_values(options.config_file);
  const std::string file = tpu_command_file(options.request, config);
  std::optional<std::string> lines;
  if (!file.empty()) lines = read_file(file);
  const std::vector<std::string> command = tpu_config_command(options.request, config, lines);
  if (!options.debug) execute(command);
  fmt::print("Running {}\n", join(command, " "));
  return 0;
}

}  // namespace

void add_tpu_config_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<TpuConfigOptions>();
  TpuConfigRequest& request = options->request;
  CLI::App* command = app.add_subcommand("tpu-config", "Run commands on all machines of a TPU pod");
  refuse_empty(command->add_option("--config_file,--config-file", options->config_file,
                                   "The config file (default: the default one)"));
  command->add_option("--tpu_name,--tpu-name", request.tpu_name, "Name of the TPU (default: the config's)");
  command->add_option("--tpu_zone,--tpu-zone", request.tpu_zone, "Zone of the TPU (default: the config's)");
  command->add_flag("--use_alpha,--use-alpha", request.use_alpha, "Use `gcloud alpha`");
  command->add_option("--command_file,--command-file", request.command_file,
                      "A file with one command per line");
  command->add_option("--command", request.commands, "Commands to run, each as one argument");
  command->add_flag("--install_accelerate,--install-accelerate", request.install_accelerate,
                    "Install accelerate first");
  command->add_option("--accelerate_version,--accelerate-version", request.accelerate_version,
                      "A version, latest or dev");
  command->add_flag("--debug", options->debug, "Print the command and run nothing");
  command->callback([options, &code] { code = run_commands(*options); });
}

}  // namespace acc::launcher
