// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// What was typed after `acc tpu-config`.
struct TpuConfigRequest {
  std::string tpu_name = {};
  std::string tpu_zone = {};
  bool use_alpha = false;
  std::string command_file = {};
  /// Each word is a command.
  std::vector<std::string> commands = {};
  bool install_accelerate = false;
  /// A version, `latest` or `dev`.
  std::string accelerate_version = "latest";
};

/// The file whose lines are the commands: the one that was typed, or the config's if no command was; empty:
/// none.
std::string tpu_command_file(const TpuConfigRequest& request, const ConfigValues& config);

/// The gcloud command that runs the commands on all machines of a TPU pod; `lines` are those of the command
/// file. What was not typed is taken from the config. Throws Error{usage} when there is no command, name or
/// zone.
std::vector<std::string> tpu_config_command(const TpuConfigRequest& request, const ConfigValues& config,
                                            const std::optional<std::string>& lines);

}  // namespace acc::launcher
