// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

struct WorkerFailure;

/// A worker's report of its own failure: the JSON file of torch's `@record`.
struct ErrorFile {
  std::filesystem::path path = {};
  std::string message = {};
  /// The traceback; often empty.
  std::string traceback = {};
  std::optional<std::chrono::system_clock::time_point> time = {};
  /// False if the file is not such JSON; `message` is then its text.
  bool valid = true;
  /// The file is not removed at the end of the job.
  bool stays = true;
  /// Whether `when` is more exact than torch's whole seconds.
  bool exact = false;
  /// The worker says that it failed because it lost others, as libacc writes it.
  bool consequence = false;
  /// The ranks that it lost, as far as it knows.
  std::vector<int> lost_ranks = {};

  bool operator==(const ErrorFile&) const = default;
};

ErrorFile parse_error_file(std::string_view text);

/// The message in an error file that was torn later, up to its first escaped character, such as the end of
/// its first line. Empty if the file was torn before that.
std::string_view told_message(std::string_view torn);

/// Returns nullopt when the file does not exist or is empty. Texts above 64 KiB lose their middle.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& file);

/// Adds the exit code of the worker (or minus the signal number) to an error JSON, as `errorCode` inside
/// `message`. Returns other texts unchanged.
std::string with_error_code(std::string_view text, const ExitStatus& status);

/// An error file in torch's form.
std::string to_error_json(std::string_view message, std::string_view traceback,
                          std::chrono::system_clock::time_point time);

/// Writes the error file of the worker that failed first to `file`, acc's own TORCHELASTIC_ERROR_FILE,
/// replacing what it held. Does nothing when the worker has not written one. Throws Error{system}.
void leave_error_file(const std::filesystem::path& file, const WorkerFailure& failure);

}  // namespace acc::launcher
