// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "acc/launch/backlog.hpp"

namespace acc::launcher {

/// A file to which text is added, although its disk may be full for a while: what finds no room is tried
/// again with everything that follows. Of what waits 64 KiB are kept; beyond that whole lines are lost.
class LogFile {
 public:
  LogFile() = default;
  explicit LogFile(Descriptor file) : file_(std::move(file)) {}

  explicit operator bool() const { return static_cast<bool>(file_); }

  /// Empty, or why the file takes nothing at the moment: `No space left on device`.
  std::string write(std::string_view text);

  /// Tries for the last time and closes the file. Returns how many bytes of all that was written are not in
  /// it.
  std::uint64_t close();

 private:
  std::string flush();

  Descriptor file_ = {};
  Backlog backlog_ = {};
};

/// Writes what can be written of `text` to a file, and leaves the reason in `errno` when that is not all.
std::size_t write_to_file(int fd, std::string_view text);

/// A file for the lines of all workers in which one of some words occurs: torchrun's filtered_stdout.log.
class FilteredLog {
 public:
  /// `on_full`: the file takes nothing at the moment, for this reason.
  FilteredLog(Descriptor file, std::vector<std::string> words,
              std::function<void(const std::string&)> on_full);

  /// Writes `shown` when `line` holds one of the words.
  void take(std::string_view line, std::string_view shown);

  /// Closes the file. Returns how many bytes are not in it.
  std::uint64_t close() { return file_.close(); }

 private:
  LogFile file_;
  std::vector<std::string> words_;
  std::function<void(const std::string&)> on_full_;
};

}  // namespace acc::launcher
