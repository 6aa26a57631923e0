// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/launch.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/resolve.hpp"
#include "commands.hpp"
#include "launch_command.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kOwnWords = 4;

int number_in(const std::string& word) {
  if (const auto number = parse_integer(word)) return static_cast<int>(*number);
  throw Error(
      {.what = "is not for people: Python's acc.notebook_launcher starts it", .where = "acc notebook-job"});
}

// As `acc launch` with these words, but without a config file, and on the CPU where there is no GPU.
LaunchPlan plan_of_words(std::vector<std::string> words) {
  const Environment environment = Environment::of_process();
  const Machine machine = probe_machine(true);
  if (visible_gpus(machine, environment).empty()) words.insert(words.begin(), "--cpu");
  GatheredInputs gathered =
      gather_inputs(parse_command_line(words, Dialect::launch), Dialect::launch, environment, std::nullopt);
  gathered.inputs.machine = machine;
  LaunchPlan plan = resolve(gathered.inputs);
  if (!plan.problems.empty()) throw Error(ErrorKind::usage, plan.problems);
  return plan;
}

void announce(const LaunchPlan& plan) {
  fmt::print("Launching training on {} {}s.\n", plan.nproc_per_node,
             plan.settings[key::use_cpu] ? "CPU" : "GPU");
  std::fflush(stdout);
}

void become_agent_process(const LaunchPlan& plan) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = signal_set_of(forwarded_signals(handled_signals(plan)));
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

int notebook_job_command(const std::vector<std::string>& words) {
  if (words.size() <= kOwnWords) number_in("");
  const HostProgram caller = {
      .pid = ::getpid(),
      .exit_event = number_in(words[0]),
      .python = WarmPython{.pid = number_in(words[1]), .socket = number_in(words[2])}};
  const LaunchPlan plan = plan_of_words({words.begin() + kOwnWords, words.end()});
  log::open(plan.logging);
  for (const std::string& note : plan.notes) log::write(log::Level::info, note);
  if (number_in(words[3]) != 0) announce(plan);
  become_agent_process(plan);
  return run_for_program(plan, caller).exit_code;
}

}  // namespace acc::launcher
