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

/// Shortens gdb's `thread apply all bt`: threads with the same stack are one block, `Threads 2-9:`, without
/// addresses, arguments, frames below Python's interpreter and messages of gdb. Empty if the text holds no
/// stack.
std::string shorten_native_stacks(std::string_view gdb_output);

/// gdb's own message why it shows no stack.
std::string native_stacks_problem(std::string_view gdb_output);

struct StackOptions {
  /// The workers' environment: it names the flight recorder's files, and the PATH of the tools.
  Environment environment = {};
  CommandLimits limits = {};
  /// The page of a rank is this path and its local rank (ACC_PROGRESS); empty: it has none.
  std::string page_prefix = {};
  /// For so long further debuggers are started for the Python stacks, and again for the native ones.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
};

/// The debuggers that write_stacks() starts have all ended within this time.
std::chrono::milliseconds max_time(const StackOptions& options);

/// Reports what each rank of the job is doing: first, in one piece, which lines of the script they are at, or
/// without Python stacks which ranks differ from the others, and the state of each and what the kernel says
/// its main thread waits for; then, those that differ first, each rank's threads, Python stacks (py-spy) and
/// NCCL's flight recorder; at last the native stacks (gdb), which take longer. Before all that, while the
/// Python of `--preload` imports, its threads and Python stacks. Names missing tools. Takes seconds: a
/// debugger stops its process. `write` receives whole lines as they come.
void write_stacks(const JobView& job, const StackOptions& options,
                  const std::function<void(std::string_view)>& write);

/// Asks NCCL's flight recorder of the rank to write its file now, if the workers have opened a pipe for that
/// (TORCH_NCCL_DEBUG_INFO_PIPE_FILE).
void ask_for_flight_record(int rank, const Environment& environment);

/// The file that NCCL's flight recorder wrote for the rank, newest first; empty when there is none.
std::filesystem::path find_flight_record(int rank, const Environment& environment);

}  // namespace acc::launcher
