// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/output_ring.hpp"

namespace acc::launcher {

/// What a running job lets its user do to it. Called on the event loop, and must not wait.
struct JobHandlers {
  std::function<JobView()> view = {};
  /// As one SIGTERM would; `now`: as two.
  std::function<void(bool now)> stop = {};
  /// Null: nothing of that worker is kept.
  std::function<const OutputRing*(int local_rank)> output = {};
  /// Writes the stacks of all ranks to the connection, from another process, and closes it there.
  std::function<void(Descriptor connection)> write_stacks = {};
};

/// The socket of a running job, on the caller's event loop: `<folder>/<id>.sock`, for its user and root
/// alone.
///
/// A request is one line of JSON, `{"request": "view" | "stop" | "logs" | "stacks", ...}`, and so is the
/// answer:
/// `{"job": ...}`, `{"error": "..."}`. Who asks for `stop` or follows `logs` hears `{"ended": CODE}` at the
/// end of the job. `logs` (`"ranks"`, `"follow"`) sends `{"rank", "stream", "skipped", "bytes": N}` and then
/// N bytes. `stacks` sends text until the connection closes. Bad bytes cost their own connection alone. Of
/// more than 64 connections the oldest that waits for nothing is closed.
class ControlServer {
 public:
  /// Listens in the first of `folders` that can be used. Never throws and never waits: without a socket the
  /// job runs all the same, and problem() says why there is none.
  ControlServer(boost::asio::io_context& loop, const std::vector<std::filesystem::path>& folders,
                const std::string& id, JobHandlers handlers);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Empty when it listens.
  const std::string& problem() const;

  /// A ring has grown: those who follow get it.
  void output_grew();

  /// A worker has started, with a ring and log files of its own: those who follow hear `{"started": {...}}`,
  /// as they do of those that run when they begin to follow.
  void worker_started(const RankView& rank);

  /// The job has ended: takes the socket away and tells those who wait for it.
  void end(int exit_code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
