// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/system_timer.hpp>
#include <filesystem>
#include <functional>
#include <string>

#include "acc/launch/timer_table.hpp"

namespace acc::launcher {

/// torchrun's file timer: workers say through a named pipe when they must be through with something, and one
/// that is not is ended. Unlike torchrun, which then ends itself, acc sees a failed worker.
class FileTimer {
 public:
  using OnExpired = std::function<void(const TimerTable::Expired&)>;

  /// Makes the pipe; one that was left there goes. Throws Error{system}.
  FileTimer(boost::asio::io_context& loop, std::filesystem::path pipe, OnExpired on_expired);
  /// Removes the pipe.
  ~FileTimer();
  FileTimer(const FileTimer&) = delete;
  FileTimer& operator=(const FileTimer&) = delete;

 private:
  void wait_readable();
  void take_lines();
  void wait_deadline();

  std::filesystem::path path_;
  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::system_timer clock_;
  OnExpired on_expired_;
  TimerTable table_ = {};
  std::string unread_ = {};
};

}  // namespace acc::launcher
