// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/subprocess/child_answer.hpp"
#include "acc/formats/saved_states.hpp"

namespace acc::launcher {

/// What became of the newest state in memory.
struct FlushResult {
  /// Its folder on the disk; empty: there is none that the disk does not have, or nobody knows where it goes.
  std::filesystem::path folder = {};
  /// What is wrong with newer states, which are damaged; the newest first.
  std::vector<std::string> damaged = {};
  /// Why it is not on the disk; empty: it is.
  std::string problem = {};

  /// Nothing was to be done.
  bool empty() const { return *this == FlushResult(); }
  bool operator==(const FlushResult&) const = default;
};

/// As a line of JSON, and back.
std::string encode(const FlushResult& result);
FlushResult decode_flush_result(std::string_view text);

/// The result of a child, which says nothing if it was killed.
FlushResult result_of(const ChildAnswer::Answer& answer, bool interrupted);

/// The states in memory that are newer than all that exist on a disk; `states` and result are the newest
/// first.
std::vector<SavedState> newer_than_disk(
    const std::vector<SavedState>& states,
    const std::function<bool(const std::filesystem::path& folder)>& exists);

/// A state, and the folder that it becomes on a disk.
struct StateFolder {
  std::int64_t number = 0;
  std::filesystem::path disk = {};
};

/// Whether the newest of these states, given first, may become a folder while the training goes on: the state
/// saved just before has another one. Else the training may be about to save in that folder by itself.
bool has_own_folder(const std::vector<StateFolder>& states);

/// Who else may write to the disk.
enum class Workers { running, ended };

/// Copies the newest undamaged state of the last training in this memory to the folder on a disk that it
/// names, if the disk has none as new; while workers run, only where it has_own_folder(). The folder appears
/// when it is whole, also if the machine fails. What cannot be done is in the result. `is_interrupted` is
/// asked between parts of files: then nothing is left.
FlushResult flush_newest_state(
    const std::filesystem::path& memory, Workers workers,
    const std::function<bool()>& is_interrupted = [] { return false; });

/// Flushes the newest state in a child process: disks can block for minutes.
class StateFlush {
 public:
  /// `done` is called from the event loop, once for each begin() that returns true.
  StateFlush(boost::asio::io_context& loop, std::filesystem::path memory,
             std::function<void(const FlushResult&)> done)
      : memory_(std::move(memory)), done_(std::move(done)), child_(loop) {}

  /// Returns false where no training has a state in memory. Not to be called while one is being flushed.
  bool begin(Workers workers);

  /// Makes it end within seconds, done or not.
  void interrupt();

 private:
  std::filesystem::path memory_;
  std::function<void(const FlushResult&)> done_;
  ChildAnswer child_;
  bool interrupted_ = false;
};

}  // namespace acc::launcher
