// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace acc::launcher
