// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// What a worker wrote about its own failure: the JSON of torch's `@record`.
struct ErrorFile {
  std::filesystem::path path = {};
  std::string message = {};
  /// The whole traceback; often empty.
  std::string traceback = {};
  std::optional<std::chrono::system_clock::time_point> when = {};
  /// False: the file is not such a JSON, and `message` is its text.
  bool valid = true;
  /// It is still there when the job has ended.
  bool stays = true;
  /// Whether `when` is more exact than torch's whole seconds.
  bool exact = false;
  /// The worker says that it only noticed the loss of another.
  bool consequence = false;

  bool operator==(const ErrorFile&) const = default;
};

ErrorFile parse_error_file(std::string_view text);

/// Absent when there is no such file, or an empty one. Reads at most 1 MiB of it.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& file);

}  // namespace acc::launcher
