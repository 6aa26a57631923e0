// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/tpu_config.hpp"

#include <regex>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

std::string option_or_config(const std::string& option, const ConfigValues& config,
                             SettingKey<std::string> key) {
  return option.empty() ? value_in(config, key).value_or("") : option;
}

std::vector<std::string> commands_of(const TpuConfigRequest& request, const ConfigValues& config,
                                     const std::optional<std::string>& lines) {
  if (lines) {
    std::vector<std::string> commands;
    for (const std::string& line : split(*lines, '\n')) {
      if (!trim(line).empty()) commands.emplace_back(trim(line));
    }
    return commands;
  }
  if (!request.commands.empty()) return request.commands;
  return value_in(config, key::commands).value_or(std::vector<std::string>());
}

std::string accelerate_package(const std::string& version) {
  if (version == "dev") return "git+https://github.com/huggingface/accelerate.git";
  if (version == "latest") return "accelerate -U";
  // A version according to PEP 440, which accelerate checks too.
  static const std::regex version_pattern(
      R"(v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?)",
      std::regex::icase);
  if (!std::regex_match(version, version_pattern)) {
    throw Error({.what = "'" + version + "' is not a version of accelerate",
                 .where = "--accelerate_version",
                 .hint = "a version as in 1.2.0, latest or dev"});
  }
  return "accelerate==" + version;
}

}  // namespace

std::string tpu_command_file(const TpuConfigRequest& request, const ConfigValues& config) {
  if (!request.commands.empty()) return request.command_file;
  return option_or_config(request.command_file, config, key::command_file);
}

std::vector<std::string> tpu_config_command(const TpuConfigRequest& request, const ConfigValues& config,
                                            const std::optional<std::string>& lines) {
  const std::vector<std::string> commands = commands_of(request, config, lines);
  if (commands.empty())
    throw Error({.what = "no command is given", .hint = "--command COMMAND or --command_file FILE"});
  const std::string name = option_or_config(request.tpu_name, config, key::tpu_name);
  const std::string zone = option_or_config(request.tpu_zone, config, key::tpu_zone);
  if (name.empty())
    throw Error({.what = "the TPU has no name", .hint = "--tpu_name, or tpu_name in the config file"});
  if (zone.empty())
    throw Error({.what = "the TPU has no zone", .hint = "--tpu_zone, or tpu_zone in the config file"});
  std::vector<std::string> remote = {"cd /usr/share"};
  if (request.install_accelerate)
    remote.push_back("pip install " + accelerate_package(request.accelerate_version));
  remote.insert(remote.end(), commands.begin(), commands.end());
  std::vector<std::string> command = {"gcloud"};
  if (request.use_alpha) command.emplace_back("alpha");
  const std::vector<std::string> rest = {
      "compute", "tpus",      "tpu-vm",           "ssh",      name, "--zone",
      zone,      "--command", join(remote, "; "), "--worker", "all"};
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

}  // namespace acc::launcher
