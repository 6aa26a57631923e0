// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/step_history.hpp"

namespace acc::launcher {

/// A connection to a running job. Calls block until the job answers.
class ControlClient {
 public:
  explicit ControlClient(Descriptor connection) : connection_(std::move(connection)) {}

  /// Returns false if the job has ended.
  bool send(const nlohmann::json& request);

  /// The next message of the job; absent if it has closed the connection. Throws Error{system} for `error`
  /// replies and invalid JSON.
  std::optional<nlohmann::json> read_message();

  /// The same; absent, too, if the message is not there at `deadline`, or is longer than 4 MiB.
  std::optional<nlohmann::json> read_message(std::chrono::steady_clock::time_point deadline);

  /// Exactly `size` bytes, or fewer at the end of the connection.
  std::string read_bytes(std::size_t size);

  /// Passes on all bytes until the connection ends, as they arrive.
  void read_to_end(const std::function<void(std::string_view)>& on_bytes);

  /// Whether a message is buffered: read_message() does not block.
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
  /// The process that answers, and its user, which the kernel says: the view may say anything.
  pid_t agent = 0;
  uid_t user = 0;
};

/// The jobs of a user.
struct FoundJobs {
  std::vector<RunningJob> running = {};
  /// Ids of jobs that do not answer, as when the agent was stopped (SIGSTOP).
  std::vector<std::string> silent = {};
  /// Problems of folders that cannot be trusted.
  std::vector<std::string> warnings = {};
};

/// All jobs below `folders` of this user. Removes sockets of jobs that were killed.
FoundJobs find_jobs(const std::vector<std::filesystem::path>& folders);

/// The same for folders of several users, whom root does not trust: what does not belong to a folder's owner
/// is left out, as for all is a job that gives another id than its socket has.
FoundJobs find_jobs(const std::vector<RuntimeFolder>& folders);

/// The job whose first process this is; absent: there is none, or it does not answer. Waits for no other job.
std::optional<RunningJob> find_job(const std::vector<std::filesystem::path>& folders, pid_t process);

/// Reads the views of the jobs anew, which answer at once; one that does not keeps its view, and its
/// connection is closed.
void refresh(std::vector<RunningJob>& jobs);

/// The past of a rank of this node. Absent: the job knows nothing of it, is of an older acc, or does not
/// answer.
std::optional<StepHistory> ask_history(RunningJob& job, int rank);

/// Which one is meant of the client of `--hosts` and the part of its job that runs on this machine, too.
enum class JobPart {
  whole,  ///< the client, for the job
  ranks,  ///< the part, for its ranks
};

/// Index of the running job that `name` means: an id, a unique prefix of an id that cuts no number and could
/// not be the id of an earlier job, or a pid of the job; empty means the only job, silent ones included.
/// Throws Error{usage} that lists the candidates.
std::size_t choose_job(const std::vector<JobView>& running, const std::vector<std::string>& silent,
                       std::string_view name, JobPart part = JobPart::whole);

}  // namespace acc::launcher
