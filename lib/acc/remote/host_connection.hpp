// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/remote/frames.hpp"

namespace acc::launcher {

/// The client's end of the connection to one host: a child that runs ssh, and the frames through it. Lives
/// until the child has ended, whoever else still holds its output; the child is killed with it.
class HostConnection : public std::enable_shared_from_this<HostConnection> {
 public:
  struct Events {
    std::function<void(const Frame&)> on_frame = {};
    /// The child has ended and all that it sent was read; once.
    std::function<void()> on_end = {};
    /// Whether the output of the workers can be taken; nothing is read until resume() otherwise. What is left
    /// when the child has ended is passed on in any case.
    std::function<bool()> takes_output = [] { return true; };
  };

  /// ssh ignores all signals of the client but SIGHUP: a service manager or batch system signals all
  /// processes, and without ssh the last output of the workers would be lost. An agent on this machine obeys
  /// them.
  enum class Child { ssh, agent };

  HostConnection(boost::asio::io_context& loop, Events events)
      : loop_(loop), events_(std::move(events)), in_(loop), out_(loop), err_(loop) {}
  ~HostConnection() { kill(); }
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;

  /// Starts the child in a session of its own, so that Ctrl-C does not reach it. Throws Error if the program
  /// is missing or cannot be executed.
  void open(const std::vector<std::string>& command, const Environment& environment, Child child = Child::ssh,
            std::optional<rlimit> open_files = {});

  void send(FrameKind kind, std::string_view payload = {});

  /// Ends the child with what it has started here; on the other side the agent sees its input end.
  void kill();

  /// Reads on if the output can be taken now.
  void resume();

  bool is_stalled() const { return stalled_; }
  /// Absent: the child runs.
  const std::optional<ExitStatus>& status() const { return status_; }
  /// The end of its standard error.
  const std::string& errors() const { return errors_; }
  /// What came before the greeting of the agent.
  const std::string& preamble() const { return frames_.preamble(); }
  /// When the last bytes came.
  RunningClock::time_point last_heard() const { return last_heard_; }
  /// For how long nothing has come, as ssh counts it: also while this process stood still.
  std::chrono::steady_clock::duration silence_of_ssh() const {
    return std::chrono::steady_clock::now() - last_heard_by_ssh_;
  }
  /// After a time in which nothing could be read here.
  void restart_silence() {
    last_heard_ = RunningClock::now();
    last_heard_by_ssh_ = std::chrono::steady_clock::now();
  }

 private:
  void wait_for_frames();
  void wait_for_errors();
  bool read_frames();
  bool read_errors();
  std::optional<std::string_view> read_now(boost::asio::posix::stream_descriptor& stream);
  void on_child_ended();
  void write_queue();

  boost::asio::io_context& loop_;
  Events events_;
  boost::asio::writable_pipe in_;
  boost::asio::posix::stream_descriptor out_;
  boost::asio::posix::stream_descriptor err_;
  std::optional<Process> process_ = {};
  std::optional<ExitStatus> status_ = {};
  std::array<char, std::size_t{64} << 10U> buffer_ = {};
  FrameReader frames_{true};
  std::string errors_ = {};
  std::string queue_ = {};
  std::string writing_ = {};
  RunningClock::time_point last_heard_ = {};
  std::chrono::steady_clock::time_point last_heard_by_ssh_ = {};
  bool stalled_ = false;
};

}  // namespace acc::launcher
