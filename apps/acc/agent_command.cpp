// SPDX-License-Identifier: Apache-2.0
#include "agent_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_file.hpp"
#include "acc/plan/engine_values.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/remote/agent.hpp"
#include "acc/remote/client.hpp"
#include "acc/remote/host_environment.hpp"
#include "acc/remote/hosts.hpp"
#include "acc/rendezvous/job_secret.hpp"
#include "commands.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

std::chrono::milliseconds positive_seconds(double value, const std::string& where) {
  if (value > 0 && value < 1e9) return to_milliseconds(value);
  throw Error({.kind = ErrorKind::usage,
               .what = fmt::format("{:g} is not a positive number of seconds", value),
               .where = where});
}

// Each host asks its engine as its own agent will: contradictions show before anything is started.
void check_places(const LaunchInputs& given, const std::vector<JobHost>& hosts, const std::string& flag) {
  LaunchInputs inputs = given;
  const std::optional<int> all_slots = total_slots(hosts, flag);
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    inputs.host = allocation_of_host(hosts, rank, flag, all_slots);
    Settings settings(inputs);
    ask_engine(inputs, settings);
  }
}

// The nodes prove to each other that they belong to the job, by a secret of this run.
Environment environment_of_job(const LaunchInputs& inputs, const Settings& settings) {
  Environment environment =
      carried_environment(inputs.environment, settings[key::export_], settings.origin(key::export_));
  const bool has_own = settings[key::rdzv_conf].find("secret_file") != std::string::npos;
  if (!has_own && !environment.contains(kSecretVariable)) environment.set(kSecretVariable, draw_nonce());
  return environment;
}

GatheredInputs inputs_on_host(const JobSpec& spec) {
  GatheredInputs gathered = gather_inputs(parse_command_line(spec.words, spec.dialect), spec.dialect,
                                          spec.environment, spec.config, spec.replaced);
  gathered.inputs.host = spec.host;
  return gathered;
}

int agent_command() {
  if (::isatty(STDIN_FILENO) == 1) {
    throw Error(
        {.what = "is not for a terminal: `acc launch --hosts` starts it on each host", .where = "acc agent"});
  }
  return run_agent(
      {.version = kVersionLine,
       .check =
           [](const JobSpec& spec) {
             const LaunchPlan plan = plan_of(inputs_on_host(spec));
             if (!plan.problems.empty()) throw Error(ErrorKind::usage, plan.problems);
             return plan.shutdown_timeout;
           },
       .run = [](const JobSpec& spec) { return start_or_explain(plan_of(inputs_on_host(spec))); },
       .reports =
           [](const JobSpec& spec, pid_t job) {
             return reports_of_job(runtime_folders(spec.environment, ::geteuid()), job);
           }});
}

}  // namespace

std::optional<int> launch_on_hosts(const GatheredInputs& gathered, const std::vector<std::string>& words) {
  const LaunchInputs& inputs = gathered.inputs;
  const auto& flags = inputs.command_line.flags;
  if (!flags.contains(key::hosts) && !flags.contains(key::hostfile)) return std::nullopt;
  const Settings settings(inputs);
  const std::vector<JobHost> hosts = hosts_of(settings);
  const std::string flag = hosts_flag(settings);
  check_hosts(inputs, settings, hosts);
  check_places(inputs, hosts, flag);
  log::open(choose_log(inputs, settings));
  RemoteJob job = {
      .hosts = hosts, .flag = flag, .environment = inputs.environment, .run_id = inputs.random_id};
  job.spec = {.version = kVersionLine,
              .dialect = inputs.dialect,
              .replaced = gathered.replaced,
              .words = words,
              .folder = inputs.folder,
              .environment = environment_of_job(inputs, settings),
              .config = gathered.config};
  if (const auto timeout = settings[key::node_timeout])
    job.silence = positive_seconds(*timeout, settings.origin(key::node_timeout));
  job.shell = remote_shell(inputs.environment, program_folder() / "acc", own_names(), job.silence);
  const MachineRange machines = decide_machines(settings);
  job.command = inputs.command_line.program;
  job.survives_loss =
      settings.given(key::nnodes) && machines.min < machines.max && settings[key::rdzv_backend] != "static";
  job.in_order = settings.given(key::dry_run);
  job.host_timeout = positive_seconds(settings[key::host_timeout], settings.origin(key::host_timeout));
  job.handled_signals = signals_for_hosts(inputs, settings);
  return run_on_hosts(job);
}

void add_agent_command(CLI::App& app, int& code) {
  CLI::App* command =
      app.add_subcommand("agent",
                         "The far side of `acc launch --hosts`, which starts it on each host over ssh: reads "
                         "what to run on standard\n"
                         "input, runs it there, and ends it when that input ends. Not to be called by hand");
  command->group("");  // for acc itself only
  command->callback([&code] { code = agent_command(); });
}

}  // namespace acc::launcher
