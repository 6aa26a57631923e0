// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "acc/launch/launch_report.hpp"

namespace acc::launcher {

/// A worker's error JSON as a launcher hands it on: with the worker's exit code (minus the signal's number)
/// as `errorCode` inside `message`. What has no such place is returned as it is.
std::string with_error_code(std::string_view text, const ExitStatus& status);

/// An error in torch's form.
std::string to_error_json(std::string_view message, std::string_view traceback,
                          std::chrono::system_clock::time_point when);

/// Whoever started acc with TORCHELASTIC_ERROR_FILE finds there why the job failed: a copy of the error file
/// of the worker that failed first; nothing when it wrote none. What was there before goes. Throws
/// Error{system}.
void leave_error_file(const std::filesystem::path& file, const WorkerFailure& failure);

}  // namespace acc::launcher
