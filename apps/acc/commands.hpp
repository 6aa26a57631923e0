// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/config/schema.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace acc::launcher {

/// What --version prints.
inline constexpr const char* kVersionLine = "acc " ACC_VERSION;

// Commands whose words are read by the schema's grammar. They return the exit code.

/// `acc launch`, or `acc run` and the name torchrun by their dialect. `program` is how the help calls it.
int launch_command(const std::vector<std::string>& words, Dialect dialect, const std::string& program);

/// `acc test`: runs acc-selftest on the very launch path that the user's config (and any flags of
/// `acc launch`) asks for.
int test_command(const std::vector<std::string>& words);

// Commands whose words are read by CLI11. Each sets `code`, the exit code, when it ran.

/// `acc config` and what stands below it.
void add_config_command(CLI::App& app, int& code);

/// `acc env`.
void add_env_command(CLI::App& app, int& code);

/// `acc ps`, `acc stop` and `acc logs`.
void add_ps_command(CLI::App& app, int& code);
void add_stop_command(CLI::App& app, int& code);
void add_logs_command(CLI::App& app, int& code);

/// `acc estimate-memory`: what a model needs of memory, from the heads of its files.
void add_estimate_command(CLI::App& app, int& code);

/// `acc merge-weights`: makes one safetensors file of many.
void add_merge_command(CLI::App& app, int& code);

/// `acc to-fsdp2`: rewrites a config file for version 2 of FSDP.
void add_to_fsdp2_command(CLI::App& app, int& code);

/// `acc tpu-config`: runs commands on all machines of a TPU pod.
void add_tpu_config_command(CLI::App& app, int& code);

/// `acc completion`: prints the script that completes acc in a shell. The other commands must be there
/// already.
void add_completion_command(CLI::App& app, int& code);

/// `acc man`: prints a man page, for the build. The other commands must be there already.
void add_man_command(CLI::App& app, int& code);

}  // namespace acc::launcher
