// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/preemption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "acc/base/engine.hpp"
#include "acc/plan/flag_grammars.hpp"

namespace acc::launcher {
namespace {

using std::chrono::milliseconds;

// Slurm sends SIGTERM twice at a time limit, and to each process of the job. However late the second one
// comes, on a loaded machine: an engine kills by itself.
constexpr milliseconds kRepeatedByEngine = std::chrono::hours(24);

double to_seconds(milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

// How mpirun is given its setting, which its processes see; empty: the site configures another engine.
std::string mpirun_flag(const EngineStop& stop) {
  if (stop.engine == "Open MPI") return "mpirun --mca " + stop.setting;
  return stop.engine == "PRRTE" ? "prterun --prtemca " + stop.setting : std::string();
}

void fit_grace(const EngineStop& stop, Settings& settings, LaunchPlan& plan) {
  if (!stop.grace) return;
  const milliseconds grace = grace_within(*stop.grace);
  const double timeout = settings[key::shutdown_timeout];
  if (timeout <= to_seconds(grace)) return;
  const bool is_given = settings.given(key::shutdown_timeout);
  if (!is_given) {
    settings.set(key::shutdown_timeout, to_seconds(grace),
                 fmt::format("{} kills {:g} s after SIGTERM ({})", stop.engine, to_seconds(*stop.grace),
                             stop.setting));
  }
  const std::string flag = mpirun_flag(stop);
  if (flag.empty() || plan.machine_rank != 0) return;
  plan.notes.push_back(fmt::format("{} kills {:g} s after SIGTERM; a checkpoint at the end needs {} {:g}",
                                   stop.engine, to_seconds(*stop.grace), flag,
                                   std::max(60.0, timeout * 1.25)));
}

}  // namespace

milliseconds grace_within(milliseconds engine_grace) {
  return engine_grace - std::min<milliseconds>(engine_grace / 5, std::chrono::seconds(5));
}

std::set<int> handled_signals(const LaunchPlan& plan) {
  std::set<int> signals = plan.stop_signals;
  signals.insert(plan.notice_signals.begin(), plan.notice_signals.end());
  return signals;
}

std::set<int> signals_for_hosts(const LaunchInputs& inputs, const Settings& settings) {
  const std::vector<int> named =
      parse_signals(settings[key::signals_to_handle], settings.origin(key::signals_to_handle));
  std::set<int> signals(named.begin(), named.end());
  if (engine_stop(inputs.environment) || settings[key::requeue_on_preemption])
    signals.insert({SIGUSR1, SIGUSR2});
  return signals;
}

std::vector<int> signals_that_workers_ignore(const LaunchPlan& plan) {
  std::set<int> signals = plan.notice_signals;
  signals.insert(plan.ignored_signals.begin(), plan.ignored_signals.end());
  return {signals.begin(), signals.end()};
}

void plan_preemption(const LaunchInputs& inputs, Settings& settings, LaunchPlan& plan) {
  plan.requeue_on_preemption = settings[key::requeue_on_preemption];
  const auto stop = engine_stop(inputs.environment);
  if (stop) {
    plan.repeated_sigterm = kRepeatedByEngine;
    fit_grace(*stop, settings, plan);
  }
  if (!stop && !plan.requeue_on_preemption) return;
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    if (!plan.stop_signals.contains(signal)) plan.notice_signals.insert(signal);
  }
}

}  // namespace acc::launcher
