// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/control/job_view.hpp"

namespace acc::launcher {

/// A connection to a running job. Waits for each answer.
class ControlClient {
 public:
  explicit ControlClient(Descriptor connection) : connection_(std::move(connection)) {}

  /// False when the job is gone.
  bool send(const nlohmann::json& request);

  /// The next line of the job; absent when it has closed the connection. Throws Error{system} for `error`
  /// answers and for what is not JSON.
  std::optional<nlohmann::json> read_message();

  /// Exactly so many bytes, or fewer at the end of the connection.
  std::string read_bytes(std::size_t size);

  /// The bytes until the connection ends, as they come.
  void read_rest(const std::function<void(std::string_view)>& take);

  /// Whether a message is buffered already: the connection need not become readable.
  bool has_received() const { return received_.find('\n') != std::string::npos; }

  int descriptor() const { return connection_.get(); }

 private:
  bool receive();

  Descriptor connection_;
  std::string received_ = {};
};

/// A job that has answered.
struct RunningJob {
  JobView view = {};
  ControlClient client;
};

/// The jobs of a user.
struct FoundJobs {
  std::vector<RunningJob> running = {};
  /// Ids of jobs that do not answer, as when the agent was stopped (SIGSTOP).
  std::vector<std::string> silent = {};
  /// Problems of folders that cannot be trusted.
  std::vector<std::string> warnings = {};
};

/// All jobs below `folders`. Sockets of jobs that were killed are removed on the way.
FoundJobs find_jobs(const std::vector<std::filesystem::path>& folders);

/// The running job that `name` means: an id, the beginning of one id only, a process of the job; empty: the
/// only job, which it is not beside a silent one. Throws Error{usage} that lists the candidates.
std::size_t choose_job(const std::vector<JobView>& running, const std::vector<std::string>& silent,
                       std::string_view name);

}  // namespace acc::launcher
