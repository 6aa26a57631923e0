// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "acc/launch/log_file.hpp"

namespace acc::launcher {

/// The file of `--event-log`. Lines are added to what is there, each in one write, so that several nodes and
/// runs may share a file.
class EventLog {
 public:
  /// Throws Error{system}. `on_full`: the file takes nothing at the moment, for this reason; called once.
  EventLog(const std::filesystem::path& file, std::function<void(const std::string&)> on_full);
  ~EventLog() { file_.close(); }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void write(std::string_view line);

 private:
  LogFile file_;
  std::function<void(const std::string&)> on_full_;
  bool told_ = false;
};

}  // namespace acc::launcher
