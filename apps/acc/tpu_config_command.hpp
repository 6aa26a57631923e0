// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc tpu-config`: runs commands on all machines of a TPU pod.
void add_tpu_config_command(CLI::App& app, int& code);

}  // namespace acc::launcher
