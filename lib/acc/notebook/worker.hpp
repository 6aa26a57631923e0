// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/notebook/notebook_launcher.hpp"
#include "acc/notebook/shared_text.hpp"

namespace acc::detail {

/// The life of a worker, in the process that was forked for it, with the worker's variables set: calls
/// `function` in a new thread, writes the result, or an exception to the error file, and flushes the standard
/// streams. Returns the exit code.
int run_worker(const WorkerFunction& function, const SharedText& result);

/// Flushes all standard streams, as exit() does.
void flush_standard_streams();

/// What run_worker() has written; nullopt when the function did not return, as after exit(0).
std::optional<std::string> result_in(const SharedText& result);

}  // namespace acc::detail
