// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/file_timer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/stat_line.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

TimerTable::Time running_time(double seconds, const TimerTable::Now& now) {
  using namespace std::chrono;
  constexpr double kLatest = 4e9;
  const auto time = duration<double>(std::min(seconds, kLatest));
  return now.running + duration_cast<RunningClock::duration>(time - now.wall.time_since_epoch());
}

}  // namespace

TimerTable::TimerTable() : TimerTable([](pid_t pid) { return process_start(std::to_string(pid)); }) {}

bool TimerTable::add(std::string_view line, const Now& now) {
  const Json request = Json::parse(line, nullptr, false);
  const auto number = [&](const char* key) { return request.contains(key) && request[key].is_number(); };
  if (!request.is_object() || !number("pid") || !number("expiration_time") || !number("signal")) return false;
  if (!request.contains("scope_id") || !request["scope_id"].is_string()) return false;
  const auto pid = request["pid"].get<pid_t>();
  const auto scope = request["scope_id"].get<std::string>();
  const auto seconds = request["expiration_time"].get<double>();
  const int signal = request["signal"].get<int>();
  if (pid <= 0 || signal >= NSIG) return false;
  if (seconds >= 0) {
    const std::uint64_t start = start_of_(pid);
    TimedProcess& process = processes_[pid];
    if (process.start != start) process = {.start = start};
    process.timers[scope] = {.expiry = running_time(seconds, now), .signal = signal};
    return true;
  }
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return true;
  process->second.timers.erase(scope);
  if (process->second.timers.empty()) processes_.erase(process);
  return true;
}

std::optional<TimerTable::Time> TimerTable::next() const {
  std::optional<Time> first;
  for (const auto& [pid, process] : processes_) {
    for (const auto& [scope, timer] : process.timers)
      first = std::min(first.value_or(timer.expiry), timer.expiry);
  }
  return first;
}

std::vector<TimerTable::Expired> TimerTable::expire(Time now) {
  std::vector<Expired> expired;
  for (auto process = processes_.begin(); process != processes_.end();) {
    const std::pair<const std::string, Timer>* oldest = nullptr;
    bool is_expired = false;
    for (const auto& timer : process->second.timers) {
      if (timer.second.expiry > now) continue;
      is_expired = true;
      if (timer.second.signal <= 0) continue;
      if (oldest == nullptr || timer.second.expiry < oldest->second.expiry) oldest = &timer;
    }
    if (oldest != nullptr)
      expired.push_back({process->first, oldest->first, oldest->second.signal, process->second.start});
    process = is_expired ? processes_.erase(process) : std::next(process);
  }
  return expired;
}

namespace {

// A request is a line of at most PIPE_BUF bytes.
constexpr std::size_t kMaxUnread = 4096;

[[noreturn]] void throw_pipe_error(const std::filesystem::path& pipe, const char* reason) {
  throw Error({.kind = ErrorKind::system,
               .what = std::string("cannot create the pipe of the file timer: ") + reason,
               .where = pipe.string(),
               .hint = "set TORCHELASTIC_TIMER_FILE to another path"});
}

// Opened for writing too, so that reads do not end when the last writer closes it.
int make_pipe_file(const std::filesystem::path& pipe) {
  std::error_code ignored;
  if (std::filesystem::is_fifo(pipe, ignored)) std::filesystem::remove(pipe, ignored);
  if (::mkfifo(pipe.c_str(), 0600) != 0) throw_pipe_error(pipe, std::strerror(errno));
  const int fd = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) throw_pipe_error(pipe, std::strerror(errno));
  return fd;
}

}  // namespace

using boost::system::error_code;

FileTimer::FileTimer(boost::asio::io_context& loop, std::filesystem::path pipe, OnExpired on_expired)
    : path_(std::move(pipe)),
      pipe_(loop, make_pipe_file(path_)),
      clock_(loop),
      on_expired_(std::move(on_expired)) {
  wait_readable();
}

FileTimer::~FileTimer() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void FileTimer::wait_readable() {
  pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](error_code error) {
    if (error) return;
    std::array<char, 4096> chunk = {};
    const ssize_t n = ::read(pipe_.native_handle(), chunk.data(), chunk.size());
    if (n > 0) unread_.append(chunk.data(), static_cast<std::size_t>(n));
    read_requests();
    wait_readable();
  });
}

void FileTimer::read_requests() {
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    table_.add(std::string_view(unread_).substr(0, end), {});
    unread_.erase(0, end + 1);
  }
  if (unread_.size() > kMaxUnread) unread_.clear();
  wait_deadline();
}

void FileTimer::wait_deadline() {
  const auto next = table_.next();
  if (!next) {
    clock_.cancel();
    return;
  }
  clock_.expires_at(*next);
  clock_.async_wait([this](error_code error) {
    if (error) return;
    for (const TimerTable::Expired& expired : table_.expire(RunningClock::now())) on_expired_(expired);
    wait_deadline();
  });
}

}  // namespace acc::launcher
