// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Applies `--attach` and `--wrap_rank` to a plan whose workers, output and hang detection are decided.
/// Throws Error{usage}.
void plan_debugging(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan);

/// Says that the job, of `world_size` workers, has no such rank.
std::string missing_rank_text(std::int64_t rank, int world_size);

/// The wrap of the rank, or null. A wrap of this rank takes precedence over one of all ranks, and a later
/// one over earlier ones.
const RankWrap* wrap_of(const LaunchPlan& plan, int rank);

/// The argv of a worker including its wrap, and the file to execute.
std::vector<std::string> wrapped_command(const LaunchPlan& plan, int rank, int local_rank);
const std::filesystem::path& worker_program(const LaunchPlan& plan, int rank);

/// Splits text into words as a shell does: at blanks, with '...', "..." and \ as quotes. Throws
/// Error{usage} with `where` for an unterminated quote.
std::vector<std::string> split_words(std::string_view text, const std::string& where);

}  // namespace acc::launcher
