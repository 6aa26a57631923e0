// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Takes `--attach` and `--wrap_rank` into a plan whose workers, output and hang watch are decided. Throws
/// Error{usage}.
void plan_debugging(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan);

/// The words in front of the rank's program, or null. What names the rank comes before what names all, and
/// the last one given before the others.
const RankWrap* wrap_of(const LaunchPlan& plan, int rank);

/// argv of one worker with its wrap; and worker_program(), the file to execute.
std::vector<std::string> wrapped_command(const LaunchPlan& plan, int rank, int local_rank);
const std::filesystem::path& worker_program(const LaunchPlan& plan, int rank);

/// Words as a shell splits them: blanks between, '...' and "..." and \ keep them. Throws Error{usage} with
/// `where` for a quote without its end.
std::vector<std::string> split_words(std::string_view text, const std::string& where);

}  // namespace acc::launcher
