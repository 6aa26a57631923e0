// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/hang_watch.hpp"
#include "acc/launch/processes.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// A child of this process that is a Python with imports done: it becomes the fork server when asked on
/// `socket` (SOCK_SEQPACKET), by scripts/package/acc/notebook_server.py.
struct WarmPython {
  pid_t pid = 0;
  int socket = -1;
};

/// A Python that imports modules once, and from which workers are forked (`--preload`). A worker is forked
/// twice, so that it becomes a child of this process, the nearest subreaper: it is waited for and signalled
/// as one that was executed, and the end of the server ends no worker. Where the imports did what no forked
/// process can take over, where they failed, and where they hang by the plan's hang timeout, workers start
/// cold. For the main thread of a subreaper.
class ForkServer {
 public:
  /// Called when the server can fork workers, or will not, and again if it ends after that; `refusal` says
  /// why it will not, and is empty otherwise.
  using OnPrepared = std::function<void(const std::string& refusal)>;

  /// The first server is the `warm` Python, if there is one.
  ForkServer(boost::asio::io_context& loop, const LaunchPlan& plan, std::optional<WarmPython> warm = {});

  /// Starts the server if there is none and none has refused; it runs with the limit `open_files`. Returns
  /// whether `on_prepared` will be called: not while the server can fork, and not after it has refused.
  bool prepare(const rlimit& open_files, OnPrepared on_prepared);

  /// Forks the worker, in a session of its own, with the environment and the streams of `launcher`. Returns
  /// nullopt when that is not possible now; then no process is left, and the worker can be started cold.
  std::optional<Process> fork(const ProcessLauncher& launcher, const WorkerStart& worker);

  /// 0: there is none.
  pid_t pid() const { return process_ ? process_->id() : 0; }

  /// What is being imported now; with pid().
  std::optional<ImportView> importing() const;

 private:
  void start(const rlimit& open_files);
  std::optional<Process> wake(const std::vector<std::string>& command, const Environment& environment,
                              const Descriptor& control, const Descriptor& program);
  void wait_for_message();
  bool read_messages();
  void on_message(std::string_view text);
  void begin_module(std::string_view module);
  void on_end();
  void watch_import();
  void refuse(const std::string& reason);
  void stop();

  boost::asio::io_context& loop_;
  const LaunchPlan& plan_;
  std::optional<WarmPython> warm_;
  boost::asio::posix::stream_descriptor control_;
  std::optional<Process> process_ = {};
  OnPrepared on_prepared_ = {};
  /// The module that is being imported, and since when.
  std::string module_ = {};
  std::chrono::system_clock::time_point module_began_ = {};
  std::uint64_t messages_ = 0;
  /// Whether it makes progress.
  IdleClock clock_;
  RunningTimer timer_;
  bool ready_ = false;
  bool refused_ = false;
};

}  // namespace acc::launcher
