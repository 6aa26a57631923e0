// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/notebook_plan.hpp"

#include <fmt/format.h>

#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/config/schema.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/runtime/comm/device_choice.hpp"

namespace acc::detail {
namespace {

using launcher::CommandLine;
using launcher::LaunchPlan;

[[noreturn]] void refuse_option(const char* option, const std::string& what, const char* hint = "") {
  throw Error({.what = what, .where = std::string("notebook_launcher: ") + option, .hint = hint});
}

void check(const NotebookLauncherOptions& options) {
  if (!options.num_processes)
    refuse_option("num_processes", "is missing: how many workers are to be started?",
                  "as in {.num_processes = 2}");
  if (*options.num_processes < 1)
    refuse_option("num_processes", "must be at least 1, not " + std::to_string(*options.num_processes));
  if (options.num_nodes < 1)
    refuse_option("num_nodes", "must be at least 1, not " + std::to_string(options.num_nodes));
  if (options.node_rank < 0 || options.node_rank >= options.num_nodes) {
    refuse_option("node_rank", "is " + std::to_string(options.node_rank) + ", and must be below num_nodes, " +
                                   std::to_string(options.num_nodes));
  }
  if (options.num_cpu_threads_per_process && *options.num_cpu_threads_per_process < 1)
    refuse_option("num_cpu_threads_per_process", "must be at least 1");
}

// The options as typed flags, which come before what the environment says.
class Flags {
 public:
  // An option that is empty was not given.
  void give(launcher::SettingId setting, std::string_view option, const std::string& text) {
    if (text.empty()) return;
    const std::string where = "notebook_launcher: " + std::string(option);
    command_line_.flags[setting] = {launcher::parse_setting(row_of(setting), text, where), where};
  }
  void give(launcher::SettingId setting, const std::string& text) {
    give(setting, row_of(setting).name, text);
  }

  CommandLine with_program(const std::filesystem::path& program) && {
    command_line_.program = {program.string()};
    return std::move(command_line_);
  }

 private:
  CommandLine command_line_ = {};
};

CommandLine to_command_line(const NotebookLauncherOptions& options, bool cpu, const NotebookHost& host) {
  namespace key = launcher::key;
  Flags flags;
  flags.give(key::nproc_per_node, "num_processes", std::to_string(*options.num_processes));
  flags.give(key::num_machines, "num_nodes", std::to_string(options.num_nodes));
  flags.give(key::machine_rank, "node_rank", std::to_string(options.node_rank));
  if (options.num_nodes > 1) flags.give(key::main_process_ip, "master_addr", options.master_addr);
  if (options.use_port) flags.give(key::main_process_port, "use_port", std::to_string(*options.use_port));
  flags.give(key::mixed_precision, options.mixed_precision);
  flags.give(key::rdzv_backend, options.rdzv_backend);
  flags.give(key::rdzv_endpoint, options.rdzv_endpoint);
  flags.give(key::rdzv_conf, options.rdzv_conf);
  flags.give(key::rdzv_id, options.rdzv_id);
  flags.give(key::max_restarts, std::to_string(options.max_restarts));
  flags.give(key::log_line_prefix_template, options.log_line_prefix_template);
  flags.give(key::log_dir, options.log_dir);
  flags.give(key::redirects, options.redirects);
  flags.give(key::tee, options.tee);
  if (options.num_cpu_threads_per_process)
    flags.give(key::num_cpu_threads_per_process, std::to_string(*options.num_cpu_threads_per_process));
  // std::to_string would write the decimal point of the program's locale.
  flags.give(key::shutdown_timeout,
             fmt::to_string(std::chrono::duration<double>(options.shutdown_timeout).count()));
  if (cpu) flags.give(key::use_cpu, "cpu", "true");
  return std::move(flags).with_program(host.program);
}

}  // namespace

NotebookHost this_host() {
  std::error_code ignored;
  return {.environment = Environment::of_process(),
          .machine = probe_machine(true),
          .folder = current_folder(),
          .program = std::filesystem::read_symlink("/proc/self/exe", ignored)};
}

LaunchPlan plan_notebook_job(const NotebookLauncherOptions& options, const NotebookHost& host) {
  check(options);
  const bool cpu =
      must_use_cpu(options.cpu, host.environment) || visible_gpus(host.machine, host.environment).empty();
  launcher::LaunchInputs inputs;
  inputs.command_line = to_command_line(options, cpu, host);
  inputs.environment = host.environment;
  inputs.folder = host.folder;
  inputs.temporary_folder = temporary_folder(host.environment);
  inputs.machine = host.machine;
  inputs.allowed_cores = host.allowed_cores;
  // The program runs already.
  inputs.file_kind = [](const std::filesystem::path&) { return launcher::FileKind::executable; };
  LaunchPlan plan = launcher::resolve(inputs);
  if (plan.delegated)
    refuse_option(
        "", "the environment asks for DeepSpeed, MPI or a TPU, whose launchers start programs of their own");
  if (!plan.problems.empty()) throw Error(ErrorKind::usage, plan.problems);
  return plan;
}

std::string announcement(const LaunchPlan& plan) {
  const bool cpu = plan.settings[launcher::key::use_cpu];
  if (plan.nproc_per_node == 1) return cpu ? "Launching training on CPU." : "Launching training on one GPU.";
  return "Launching training on " + std::to_string(plan.nproc_per_node) + (cpu ? " CPUs." : " GPUs.");
}

}  // namespace acc::detail
