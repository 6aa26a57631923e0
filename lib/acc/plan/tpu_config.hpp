// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// The options of `acc tpu-config`.
struct TpuConfigRequest {
  std::string tpu_name = {};
  std::string tpu_zone = {};
  bool use_alpha = false;
  std::string command_file = {};
  /// One command per element.
  std::vector<std::string> commands = {};
  bool install_accelerate = false;
  /// A version, `latest` or `dev`.
  std::string accelerate_version = "latest";
};

/// The file with the commands: that of the request, else that of the config if the request has no commands;
/// empty: none.
std::string tpu_command_file(const TpuConfigRequest& request, const ConfigValues& config);

/// The gcloud command that runs the commands on all machines of a TPU pod. `lines` is the content of the
/// command file. Missing options are taken from the config. Throws Error{usage} if there is no command,
/// name or zone.
std::vector<std::string> tpu_config_command(const TpuConfigRequest& request, const ConfigValues& config,
                                            const std::optional<std::string>& lines);

}  // namespace acc::launcher
