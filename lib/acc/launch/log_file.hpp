// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/file_id.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {

/// Text that is still to be written, in order.
class Backlog {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return pending_.size() - written_; }
  std::string_view text() const { return std::string_view(pending_).substr(written_); }

  void add(std::string_view text) { pending_ += text; }

  /// Notes text that was written directly because the backlog was empty.
  void pass(std::string_view text) {
    if (!text.empty()) cut_ = text.back() != '\n';
  }

  /// Adds text up to about `max` bytes and drops the rest, in whole lines where possible. Text that is added
  /// after dropped text begins on a new line.
  void add_or_drop(std::string_view text, std::size_t max);

  /// Removes the first `bytes` of text(): they are written.
  void remove(std::size_t bytes);

  /// Drops all of it.
  void drop();

  /// Drops the rest of a line of which the beginning is written.
  void drop_rest_of_line();

  std::uint64_t dropped_bytes() const { return dropped_; }

 private:
  std::string pending_ = {};
  std::size_t written_ = 0;
  std::uint64_t dropped_ = 0;
  bool dropping_ = false;
  /// The dropped text ended within a line: the rest of the line is dropped as well.
  bool within_line_ = false;
  /// The last text that was added or written did not end with a newline.
  bool cut_ = false;
};

/// A log file that survives a full disk, and a pipe whose reader stands still: text that cannot be written is
/// retried with each later write. Up to 64 KiB wait; beyond that whole lines are dropped.
class LogFile {
 public:
  LogFile() = default;
  explicit LogFile(Descriptor file, std::filesystem::path path = {})
      : file_(std::move(file)), path_(std::move(path)) {}

  explicit operator bool() const { return static_cast<bool>(file_); }

  /// Goes on in another file, also with the whole lines that wait.
  void replace(Descriptor file);

  /// Returns why not all is written (`No space left on device`), or an empty text.
  std::string write(std::string_view text);

  /// Writes what is left, as far as possible, and closes the file: the reader of a pipe has a second for each
  /// part. Returns the number of bytes lost.
  std::uint64_t close();

 private:
  std::string flush();
  std::size_t write_now(std::string_view text);

  Descriptor file_ = {};
  std::filesystem::path path_ = {};
  Backlog backlog_ = {};
  /// What is written does not end with a newline.
  bool within_line_ = false;
};

/// Writes as much of `text` as possible and returns its length; sets `errno` when that is not all.
std::size_t write_to_file(int fd, std::string_view text);

/// A log of the lines of all workers that contain one of some words: torchrun's filtered_stdout.log.
class FilteredLog {
 public:
  /// `on_full` is called with the reason when the file cannot be written.
  FilteredLog(Descriptor file, std::vector<std::string> words,
              std::function<void(const std::string&)> on_full);

  /// Writes `prefixed`, the line with its prefix, when `line` contains one of the words.
  void write(std::string_view line, std::string_view prefixed);

  /// Closes the file. Returns the number of bytes lost.
  std::uint64_t close() { return file_.close(); }

 private:
  LogFile file_;
  std::vector<std::string> words_;
  std::function<void(const std::string&)> on_full_;
};

/// Called when something happens to an event log, each at most once.
struct EventLogCallbacks {
  /// With the reason why it cannot be written.
  std::function<void(const std::string&)> on_full = {};
  /// Its name has become another file's, which is written from then on.
  std::function<void()> on_replaced = {};
  /// With the reason why there can be no file of its name again; the old one is written.
  std::function<void(const std::string&)> on_not_replaced = {};
};

/// The file of `--event-log`. Lines are appended, each with one write(2), so several nodes and runs can share
/// the file. Once a minute it is looked for by its name, and made again if it was removed or renamed.
class EventLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Throws Error{system} when the file cannot be opened.
  EventLog(std::filesystem::path file, EventLogCallbacks callbacks,
           TimePoint now = std::chrono::steady_clock::now());
  ~EventLog() { file_.close(); }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void write(std::string_view line, TimePoint now = std::chrono::steady_clock::now());

 private:
  void look_for_name(TimePoint now);

  std::filesystem::path path_;
  LogFile file_ = {};
  /// nullopt: it is a pipe or a device, which stays what it is.
  std::optional<FileId> id_ = {};
  TimePoint looked_;
  /// Those that have been called are empty.
  EventLogCallbacks callbacks_;
};

}  // namespace acc::launcher
