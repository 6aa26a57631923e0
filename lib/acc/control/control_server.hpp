// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/step_history.hpp"

namespace acc::launcher {

/// The actions of a running job that its user can request. Called on the event loop; they must not block.
struct JobHandlers {
  std::function<JobView()> view = {};
  /// Like one SIGTERM; `now`: like two, which kills the workers.
  std::function<void(bool now)> stop = {};
  /// Null if no output of that worker is kept.
  std::function<const OutputRing*(int local_rank)> output = {};
  /// Absent: nothing is known of that rank.
  std::function<std::optional<StepHistory>(int rank)> history = {};
  /// Writes the stacks of all ranks to the connection, from another process, and closes it there.
  std::function<void(Descriptor connection)> write_stacks = {};
  /// Passes on what the other nodes of the job say of their ranks, at once or later; null: it has none.
  std::function<void(std::function<void(const nlohmann::json&)> answer)> nodes = {};
};

/// The socket of a running job, on the caller's event loop: `<folder>/<id>.sock`, for its user and root
/// alone.
///
/// A request is one line of JSON, `{"request": "view" | "nodes" | "stop" | "logs" | "stacks" | "history",
/// ...}`, and so is the answer:
/// `{"job": ...}`, `{"error": "..."}`. A client that asks for `stop` or follows `logs` receives `{"ended":
/// CODE}` at the end of the job. `logs` (`"ranks"`, `"follow"`) sends `{"rank", "stream", "skipped", "bytes":
/// N}` and then N bytes. `stacks` sends text until the connection closes. `history`
/// (`"rank"`) is answered with `{"history": {...}}`, or null, and `nodes` by to_json(NodeReports). A request
/// is read when the answers to those before are sent. Invalid input closes only its own connection. Of more
/// than 64 connections the oldest idle one is closed; 32 of them may follow `logs`.
class ControlServer {
 public:
  /// Listens in the first of `folders` that can be used. Never throws and never blocks: the job also runs
  /// without a socket, and problem() says why there is none. Calls restore() every ten seconds.
  ControlServer(boost::asio::io_context& loop, const std::vector<std::filesystem::path>& folders,
                const std::string& id, JobHandlers handlers);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Empty when it listens.
  const std::string& problem() const;

  /// Warns the user of the problem, if there is one.
  void report_problem() const;

  /// Listens anew if the socket has vanished, as with the folders of a user who has logged out, or something
  /// else has its name. Where that is the socket of another living job, the next folder is used.
  void restore();

  /// Sends new output to the clients that follow it.
  void output_grew();

  /// A worker has started, with a ring and log files of its own. Clients that follow `logs` receive
  /// `{"started": {...}}`, as they do for each running worker when they begin to follow.
  void worker_started(const RankView& rank);

  /// The job has ended: removes the socket and notifies the clients that wait for it.
  void end(int exit_code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
