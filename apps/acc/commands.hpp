// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/config/schema.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/program.hpp"
#include "acc/remote/job_spec.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace acc::launcher {

/// The output of --version.
inline constexpr const char* kVersionLine = "acc " ACC_VERSION;

// Commands that parse their arguments by the schema. They return the exit code.

/// A call of `acc launch` or, by the dialect, of `acc run` and torchrun.
struct LaunchCall {
  std::vector<std::string> words = {};
  Dialect dialect = Dialect::launch;
  /// The name in the help.
  std::string program = {};
  Environment environment = {};
  /// The launcher, torchrun or accelerate, whose name acc has: as there, Python scripts run under its Python
  /// whatever their `#!` says. Empty: acc's own command.
  std::string replaced = {};
  /// Called with the config file, which may be a pipe and is read once, before anything is done.
  std::function<void(const ConfigText&)> check_config = {};
};

int launch_command(LaunchCall call);

/// `acc test`: launches acc-selftest with the user's config and any flags of `acc launch`.
int test_command(const std::vector<std::string>& words);

/// `acc notebook-job CALLER PYTHON SOCKET ANNOUNCE WORDS...`: the job of one call of Python's
/// acc.notebook_launcher, of whose fork server this process is a child. CALLER is a pidfd of the notebook,
/// PYTHON a WarmPython with its SOCKET, ANNOUNCE 1 or 0, and WORDS those of `acc launch`. Not for people.
int notebook_job_command(const std::vector<std::string>& words);

/// Adds `acc test` with its own flags, for help, man page and completion; test_command() parses them.
void describe_test_command(CLI::App& app);

/// By whose rules a command acts: acc's, or those of the accelerate whose name it was called by.
enum class CommandSet { acc, accelerate };

/// The programs of accelerate's package, whose names acc may have.
std::vector<std::string> accelerate_names();

/// The command and its arguments where acc was called by such a name; absent by another one.
std::optional<std::vector<std::string>> accelerate_words(const std::string& name,
                                                         const std::vector<std::string>& words);

/// `accelerate WORDS`, and `acc accelerate [--python FILE [--module]] WORDS`: accelerate's commands, with its
/// exit codes, files and texts where programs may read them. FILE is the Python that would have run
/// accelerate: for the workers, and for what acc hands on. --module: by `python -m`, which also finds modules
/// in the current folder.
int accelerate_command(std::vector<std::string> words, Environment environment);

/// Adds `acc accelerate`, for help, man page and completion.
void describe_accelerate_command(CLI::App& app);

// Commands that CLI11 parses. Each sets `code`, the exit code, when it runs.

/// `acc config` and its subcommands.
void add_config_command(CLI::App& app, int& code, CommandSet rules);

/// `acc env`, about the Python that `find` finds.
void add_env_command(CLI::App& app, int& code, std::function<Python()> find);

/// `acc ps`, `acc stop` and `acc logs`.
void add_ps_command(CLI::App& app, int& code);
void add_stop_command(CLI::App& app, int& code);
void add_logs_command(CLI::App& app, int& code);

/// `acc top`: the running jobs in a terminal, as they go on.
void add_top_command(CLI::App& app);

/// `acc metrics`: the running jobs of the machine for Prometheus.
void add_metrics_command(CLI::App& app);

/// `acc report`: an HTML page that tells from event logs how a job went.
void add_report_command(CLI::App& app);

/// `acc estimate-memory`: the memory that a model needs, from the headers of its files, which `find` finds by
/// the name that was typed.
void add_estimate_command(CLI::App& app, int& code,
                          std::function<std::filesystem::path(const std::string& name)> find);

/// `acc merge-weights`: merges shards into one safetensors file.
void add_merge_command(CLI::App& app, int& code);

/// `acc to-fsdp2`: rewrites a config file for version 2 of FSDP.
void add_to_fsdp2_command(CLI::App& app, int& code);

/// `acc new`: writes a project to start from.
void add_new_command(CLI::App& app, int& code);

/// `acc compile`: writes the training step of a Python model as a package. Becomes the Python that does it.
void add_compile_command(CLI::App& app);

/// `acc notebook`: sets up C++ notebooks in Jupyter. Becomes the Python that does it.
void add_notebook_command(CLI::App& app, int& code);

/// `acc install-torchrun` and `acc install-accelerate`: make the programs of these names beside acc links to
/// acc, and take that back.
void add_install_commands(CLI::App& app, int& code);

/// `acc tpu-config`: runs commands on all machines of a TPU pod.
void add_tpu_config_command(CLI::App& app, int& code);

/// `acc agent`: the far side of `acc launch --hosts`, for ssh.
void add_agent_command(CLI::App& app, int& code);

/// `acc completion`: prints the completion script for a shell. Must be added after the other commands.
void add_completion_command(CLI::App& app, int& code);

/// `acc man`: prints a man page, for the build. Must be added after the other commands.
void add_man_command(CLI::App& app, int& code);

}  // namespace acc::launcher
