// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/control/job_view.hpp"

namespace acc::launcher {

/// gdb's `thread apply all bt` for a person: threads that stand in the same place are one block, `Threads
/// 2-9:`, and addresses, arguments, the frames below Python's
/// interpreter and chatter are left out. Empty when the text holds no stack.
std::string shorten_native_stacks(std::string_view gdb_output);

/// Why gdb showed nothing, in its own words.
std::string native_stacks_problem(std::string_view gdb_output);

struct StackOptions {
  /// Of the workers: where they write their flight recorder's files, and the PATH with the tools.
  Environment environment = {};
  CommandLimits limits = {};
  /// No rank's Python stacks, or native ones, are begun later than this after the first rank's.
  std::chrono::milliseconds all_ranks = std::chrono::seconds(60);
};

/// What each rank of the job is doing: first, in one piece, its state and what its first thread waits for,
/// and who differs from the others. Then, those who differ first, each rank's threads, Python stacks (py-spy)
/// and NCCL's flight recorder; and when all have been told, its native stacks (gdb), which take longer. Names
/// the tool that is missing. Takes seconds: debuggers stop the process that they look at. `write` gets the
/// text as it comes, whole lines.
void write_stacks(const JobView& job, const StackOptions& options,
                  const std::function<void(std::string_view)>& write);

/// Asks NCCL's flight recorder of the rank to write its file now, where the workers have opened a pipe for
/// that (TORCH_NCCL_DEBUG_INFO_PIPE_FILE).
void ask_for_flight_record(int rank, const Environment& environment);

/// The file that NCCL's flight recorder wrote for the rank, newest first; empty when there is none.
std::filesystem::path find_flight_record(int rank, const Environment& environment);

}  // namespace acc::launcher
