// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/file_timer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

// A line of a request is at most PIPE_BUF long; more without an end is no request.
constexpr std::size_t kMostUnread = 4096;

[[noreturn]] void fail(const std::filesystem::path& pipe, const char* reason) {
  throw Error({.kind = ErrorKind::system,
               .what = std::string("the pipe of the file timer cannot be made: ") + reason,
               .where = pipe.string(),
               .hint = "TORCHELASTIC_TIMER_FILE names another place"});
}

// Open for writing too, so that the last writer who closes it does not end it.
int make_pipe_file(const std::filesystem::path& pipe) {
  std::error_code ignored;
  if (std::filesystem::is_fifo(pipe, ignored)) std::filesystem::remove(pipe, ignored);
  if (::mkfifo(pipe.c_str(), 0600) != 0) fail(pipe, std::strerror(errno));
  const int fd = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail(pipe, std::strerror(errno));
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
    take_lines();
    wait_readable();
  });
}

void FileTimer::take_lines() {
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    table_.take(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 1);
  }
  if (unread_.size() > kMostUnread) unread_.clear();
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
    for (const TimerTable::Expired& expired : table_.expire(std::chrono::system_clock::now()))
      on_expired_(expired);
    wait_deadline();
  });
}

}  // namespace acc::launcher
