// SPDX-License-Identifier: Apache-2.0
#include "acc/control/control_client.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/job_trust.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSocketSuffix = ".sock";
// A stopped agent (SIGSTOP) does not answer, and must not block a command that asks all jobs.
constexpr std::chrono::seconds kTimeout{3};
// Of a job's answer: some thousand ranks.
constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;
constexpr std::size_t kPieceBytes = std::size_t{16} << 10U;

timeval to_timeval(std::chrono::microseconds time) {
  return {.tv_sec = time.count() / 1'000'000, .tv_usec = time.count() % 1'000'000};
}

// A job's socket, after an attempt to connect to it.
struct Connection {
  /// Empty if no process listens, or it has not accepted those that came before.
  Descriptor socket = {};
  bool is_full = false;
};

// Removes a socket that a killed job has left.
Connection connect_to(int folder, const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const timeval timeout = to_timeval(kTimeout);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) ::unlinkat(folder, name.c_str(), 0);
    return {.is_full = errno == EAGAIN};
  }
  ::fcntl(socket.get(), F_SETFL, 0);
  return {.socket = std::move(socket)};
}

void set_timeout(int connection, timeval timeout) {
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

std::optional<ucred> peer_of(int connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

// Whether the processes of the job have other pids here, so that no view of it would be true. Of a job with
// --pid-namespace the agent is the init process for its workers.
bool is_elsewhere(const JobView& job, const std::optional<ucred>& agent) {
  return agent && job.agent != 0 && agent->pid != job.agent && agent->pid != 1;
}

std::string list_of(const std::vector<JobView>& jobs, const std::vector<std::string>& silent) {
  std::vector<std::string> ids;
  for (const JobView& job : jobs) ids.push_back(job.id);
  for (const std::string& id : silent) ids.push_back(id + " (does not answer)");
  return join(ids, ", ");
}

// The pid of a rank that has ended may be another process's by now.
bool has_process(const JobView& job, std::int64_t pid) {
  return job.pid == pid || job.agent == pid || (job.importing && job.importing->pid == pid) ||
         std::ranges::any_of(job.ranks,
                             [&](const RankView& rank) { return rank.pid == pid && rank.ended.empty(); });
}

bool is_decimal_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// Whether `name` is a short form of the id of a job whose first process is `pid`. What ends inside a number,
// or before the one that JobFile has added to the pid, may be the whole id of a job that has ended.
bool is_short_form(std::string_view name, std::string_view id, pid_t pid) {
  if (!id.starts_with(name)) return false;
  const std::string_view rest = id.substr(name.size());
  if (name.empty() || rest.empty()) return true;
  const bool ends_in_number = is_decimal_digit(name.back()) && is_decimal_digit(rest.front());
  return !ends_in_number && !(rest.front() == '-' && name.ends_with("-" + std::to_string(pid)));
}

// Keeps one of the client of `--hosts` and the part of its job that runs here, if these are all.
void choose_part(const std::vector<JobView>& running, std::vector<std::size_t>& matches, JobPart part) {
  if (matches.size() != 2) return;
  const auto [client, local] =
      running[matches[0]].hosts > 0 ? std::pair(matches[0], matches[1]) : std::pair(matches[1], matches[0]);
  const bool is_one_job = running[client].hosts > 0 && running[local].hosts == 0 &&
                          running[client].run_id == running[local].run_id;
  if (is_one_job) matches = {part == JobPart::whole ? client : local};
}

}  // namespace

bool ControlClient::send(const json& request) {
  const std::string line = request.dump() + "\n";
  return ::send(connection_.get(), line.data(), line.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(line.size());
}

bool ControlClient::receive() {
  std::array<char, kPieceBytes> buffer;
  ssize_t n = ::recv(connection_.get(), buffer.data(), buffer.size(), 0);
  while (n < 0 && errno == EINTR) n = ::recv(connection_.get(), buffer.data(), buffer.size(), 0);
  if (n > 0) received_.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

std::optional<json> ControlClient::read_message() {
  std::size_t end = received_.find('\n');
  for (; end == std::string::npos; end = received_.find('\n')) {
    if (!receive()) return std::nullopt;
  }
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  json message = is_deeply_nested(line) ? json() : json::parse(line, nullptr, false);
  if (!message.is_object() || (message.contains("error") && !message["error"].is_string()))
    throw Error({.kind = ErrorKind::system, .what = "the reply of a job cannot be parsed"});
  if (message.contains("error")) {
    const std::string what = message["error"];
    const bool is_unknown = what == "unknown request" || what == "invalid request";
    throw Error({.kind = ErrorKind::system,
                 .what = what,
                 .hint = is_unknown ? "it may have been started by another version of acc" : ""});
  }
  return message;
}

std::optional<json> ControlClient::read_message(std::chrono::steady_clock::time_point deadline) {
  // What is there already is read after the deadline, too, in pieces that hold the longest message.
  constexpr std::chrono::steady_clock::duration kLateWait = std::chrono::milliseconds(1);
  constexpr std::size_t kLatePieces = kMaxBytes / kPieceBytes;
  std::size_t late_reads = 0;
  bool in_time = true;
  while (in_time && !has_received()) {
    const auto remaining = deadline - std::chrono::steady_clock::now();
    if (remaining <= kLateWait) ++late_reads;
    if (late_reads > kLatePieces || received_.size() > kMaxBytes) return std::nullopt;
    const auto wait = std::max(remaining, kLateWait);
    set_timeout(connection_.get(), to_timeval(std::chrono::duration_cast<std::chrono::microseconds>(wait)));
    in_time = receive();
  }
  set_timeout(connection_.get(), {});
  return in_time ? read_message() : std::nullopt;
}

std::string ControlClient::read_bytes(std::size_t size) {
  while (received_.size() < size && receive()) {
  }
  std::string bytes = received_.substr(0, size);
  received_.erase(0, bytes.size());
  return bytes;
}

void ControlClient::read_to_end(const std::function<void(std::string_view)>& on_bytes) {
  do {
    on_bytes(received_);
    received_.clear();
  } while (receive());
}

namespace {

// A job that has been asked.
struct AskedJob {
  std::string id = {};
  ControlClient client;
};

void ask_job(const Descriptor& folder, const std::string& name, uid_t owner,
             std::vector<AskedJob>& asked_jobs) {
  const std::string id = name.substr(0, name.size() - kSocketSuffix.size());
  Connection connection = connect_to(folder.get(), name);
  if (connection.is_full) asked_jobs.push_back({.id = id, .client = ControlClient({})});
  if (!connection.socket) return;
  const auto peer = peer_of(connection.socket.get());
  // A link to a socket of somebody else.
  if (owner != ::geteuid() && (!peer || peer->uid != owner)) return;
  asked_jobs.push_back({.id = id, .client = ControlClient(std::move(connection.socket))});
  asked_jobs.back().client.send({{"request", "view"}});
}

void read_answer(AskedJob job, std::chrono::steady_clock::time_point deadline, FoundJobs& jobs) {
  const auto answer = job.client.read_message(deadline);
  if (!answer) {
    jobs.silent.push_back(job.id);
    return;
  }
  JobView view = job_view_from_json(*answer);
  if (view.id != job.id) {
    jobs.warnings.push_back("job " + job.id + " gives another id, and is left out");
    return;
  }
  const auto peer = peer_of(job.client.descriptor());
  if (is_elsewhere(view, peer)) {
    jobs.warnings.push_back("job " + job.id +
                            " runs in another container, whose processes are not seen here");
    return;
  }
  jobs.running.push_back({.view = std::move(view), .client = std::move(job.client)});
  if (!peer) return;
  jobs.running.back().agent = peer->pid;
  jobs.running.back().user = peer->uid;
}

// `is_meant` gets the name of a socket.
FoundJobs find_jobs(const std::vector<RuntimeFolder>& folders,
                    const std::function<bool(std::string_view)>& is_meant) {
  FoundJobs jobs;
  const auto with_warning = [&](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      jobs.warnings.emplace_back(error.what());
    }
  };
  // All before the first answer, so that several that do not answer take no longer than one.
  std::vector<AskedJob> asked_jobs;
  std::vector<RuntimeFolder> closed;
  for (const auto& [path, owner] : folders) {
    with_warning([&, &path = path, owner = owner] {
      const Descriptor folder = open_runtime_folder(path, false, owner);
      if (!folder) return closed.push_back({.path = path, .owner = owner});
      for (const std::string& name : names_in(folder, kSocketSuffix)) {
        if (is_meant(name)) ask_job(folder, name, owner, asked_jobs);
      }
    });
  }
  // Where a folder can be used, the jobs are there, whatever became of others.
  if (closed.size() < folders.size()) closed.clear();
  for (const auto& [path, owner] : closed)
    with_warning([&path = path, owner = owner] { require_not_taken(path, owner); });
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  for (AskedJob& job : asked_jobs) with_warning([&] { read_answer(std::move(job), deadline, jobs); });
  return jobs;
}

std::vector<RuntimeFolder> folders_of_user(const std::vector<fs::path>& folders) {
  std::vector<RuntimeFolder> result;
  for (const fs::path& folder : folders) result.push_back({.path = folder, .owner = ::geteuid()});
  return result;
}

}  // namespace

FoundJobs find_jobs(const std::vector<RuntimeFolder>& folders) {
  return find_jobs(folders, [](std::string_view) { return true; });
}

FoundJobs find_jobs(const std::vector<fs::path>& folders) {
  return find_jobs(folders_of_user(folders));
}

std::optional<RunningJob> find_job(const std::vector<fs::path>& folders, pid_t process) {
  const auto has_number = [&](std::string_view name) {
    return is_id_of(name.substr(0, name.size() - kSocketSuffix.size()), process);
  };
  for (RunningJob& job : find_jobs(folders_of_user(folders), has_number).running) {
    if (job.view.pid == process) return std::move(job);
  }
  return std::nullopt;
}

void refresh(std::vector<RunningJob>& jobs) {
  constexpr std::chrono::seconds kAnswerTimeout(1);
  for (RunningJob& job : jobs) job.client.send({{"request", "view"}});
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTimeout;
  for (RunningJob& job : jobs) {
    try {
      const auto answer = job.client.read_message(deadline);
      if (answer) job.view = job_view_from_json(*answer);
      if (!answer) job.client = ControlClient({});  // a late answer is not to be taken for the next one
    } catch (const Error&) {
      job.client = ControlClient({});
    }
  }
}

std::optional<StepHistory> ask_history(RunningJob& job, int rank) try {
  if (!job.client.send({{"request", "history"}, {"rank", rank}})) return std::nullopt;
  const auto answer = job.client.read_message(std::chrono::steady_clock::now() + kTimeout);
  const bool is_known = answer && answer->contains("history") && !answer->at("history").is_null();
  return is_known ? std::optional(step_history_from_json(answer->at("history"))) : std::nullopt;
} catch (const Error&) {  // of an older acc
  return std::nullopt;
} catch (const json::exception&) {
  return std::nullopt;
}

std::size_t choose_job(const std::vector<JobView>& running, const std::vector<std::string>& silent,
                       std::string_view name, JobPart part) {
  const bool is_empty = running.empty() && silent.empty();
  const auto fail = [&](const std::string& what) {
    throw Error(
        {.what = what,
         .where = std::string(name),
         .hint = is_empty ? "acc ps shows the running jobs" : "running: " + list_of(running, silent)});
  };
  const auto pid = parse_integer(name);
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i].id == name) return i;
    const bool is_meant = is_short_form(name, running[i].id, running[i].pid);
    if (is_meant || (pid && has_process(running[i], *pid))) matches.push_back(i);
  }
  choose_part(running, matches, part);
  const auto silent_matches =
      std::ranges::count_if(silent, [&](const std::string& id) { return is_short_form(name, id, 0); });
  if (name.empty() && is_empty) fail("no job is running");
  if (matches.size() + static_cast<std::size_t>(silent_matches) > 1)
    fail(name.empty() ? "several jobs are running: give the id of one" : "matches several jobs");
  if (silent_matches == 1) fail(name.empty() ? "the only job does not answer" : "the job does not answer");
  if (matches.empty()) fail("no such job is running");
  return matches.front();
}

}  // namespace acc::launcher
