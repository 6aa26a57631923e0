// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <set>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// The grace period of workers, so that they are killed, and reported, before an engine that waits for
/// `engine_grace` kills acc: a fifth less, at most 5 s.
std::chrono::milliseconds grace_within(std::chrono::milliseconds engine_grace);

/// Decides how the job meets the signals of what started acc, whatever else that is asked for: it sends them
/// to jobs under `--engine none` and under torchrun's rules too. The default `shutdown_timeout` becomes
/// shorter than the engine's grace; a given one stays, with a note if the engine is known to be faster. To be
/// called before `shutdown_timeout` is read. Throws Error{usage}.
void plan_preemption(const LaunchInputs& inputs, Settings& settings, LaunchPlan& plan);

/// The signals that acc acts on by itself, even if it was started to ignore them.
std::set<int> handled_signals(const LaunchPlan& plan);

/// The signals that whoever starts the job on other hosts passes on to them, whatever they would do to it:
/// those that are named to end the job, and an engine's notices. Throws Error{usage}.
std::set<int> signals_for_hosts(const LaunchInputs& inputs, const Settings& settings);

/// The signals that workers ignore until they install a handler.
std::vector<int> signals_that_workers_ignore(const LaunchPlan& plan);

}  // namespace acc::launcher
