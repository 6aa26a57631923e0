// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "acc/launch/log_file.hpp"

namespace acc::launcher {

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
