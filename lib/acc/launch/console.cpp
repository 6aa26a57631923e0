// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/console.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kMaxFileBacklog = std::size_t{1} << 20U;

}  // namespace

void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

Console::Console(int fd) : fd_(fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    on_error(errno);
    return;
  }
  if (S_ISSOCK(info.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISFIFO(info.st_mode) || ::isatty(fd) == 1) {
    // O_NONBLOCK belongs to the open description, which the shell and others share: we need one of our own. A
    // session leader must not take the terminal over.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    descriptor_ = Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    kind_ = descriptor_ ? Kind::own_description : Kind::shared;
  }
}

void Console::write(std::string_view text) {
  if (backlog_.empty() || (state_ == State::full && flush())) {
    const std::size_t done = write_some(text);
    backlog_.pass(text.substr(0, done));
    text.remove_prefix(done);
  }
  if (state_ == State::full) backlog_.add_or_drop(text, kMaxFileBacklog);
  if (state_ == State::good) backlog_.add(text);
}

bool Console::flush() {
  backlog_.remove(write_some(backlog_.text()));
  if (!is_open()) backlog_.remove(backlog_.size());
  return backlog_.empty();
}

std::uint64_t Console::give_up() {
  if (state_ == State::full && !flush()) backlog_.drop();
  return backlog_.dropped_bytes();
}

// A pipe that was full takes more only when a whole page of it is read.
std::size_t Console::unread() const {
  struct stat info = {};
  int in_pipe = 0;
  if (::fstat(native_handle(), &info) != 0 || !S_ISFIFO(info.st_mode) ||
      ::ioctl(native_handle(), FIONREAD, &in_pipe) != 0)
    return backlog();
  return backlog() + static_cast<std::size_t>(in_pipe);
}

std::size_t Console::drop() {
  const std::size_t bytes = backlog_.size();
  backlog_.remove(bytes);
  return bytes;
}

Descriptor Console::make_writable_event() const {
  Descriptor event(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted = {.events = EPOLLOUT, .data = {}};
  ::epoll_ctl(event.get(), EPOLL_CTL_ADD, native_handle(), &wanted);
  return event;
}

std::size_t Console::write_some(std::string_view text) {
  std::size_t written = 0;
  while (is_open() && written < text.size()) {
    const char* data = text.data() + written;
    const std::size_t size = text.size() - written;
    ssize_t n = 0;
    if (kind_ == Kind::socket) {
      n = ::send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::shared) {
      pollfd ready = {.fd = fd_, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, 0) != 1) break;
      n = ::write(fd_, data, std::min<std::size_t>(size, PIPE_BUF));
    } else {
      n = ::write(native_handle(), data, size);
    }
    if (n >= 0) {
      written += static_cast<std::size_t>(n);
      state_ = State::good;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      on_error(errno);
      break;
    }
  }
  return written;
}

void Console::on_error(int error) {
  error_ = error;
  if (error == EPIPE || error == ECONNRESET) {
    state_ = State::no_reader;
  } else if (kind_ == Kind::file && error != EBADF) {
    state_ = State::full;
  } else {
    state_ = State::gone;
  }
}

std::string lost_output_text(std::uint64_t bytes, const std::string& reason) {
  if (bytes == 0) return {};
  return fmt::format("{} of output {} lost: {}", pluralize(bytes, "byte"), bytes == 1 ? "is" : "are", reason);
}

bool same_file(int first, int second) {
  struct stat a = {};
  struct stat b = {};
  if (::fstat(first, &a) != 0 || ::fstat(second, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxWaiting = std::size_t{1} << 20U;

}  // namespace

OutputSink::OutputSink(boost::asio::io_context& loop, int fd, Handlers handlers)
    : console_(fd),
      mixer_([this](std::string_view text) { console_.write(text); }),
      writable_(loop),
      timer_(loop),
      handlers_(std::move(handlers)),
      terminal_(::isatty(fd) == 1) {}

void OutputSink::feed(int source, std::string_view chunk, bool drained) {
  if (terminal_) lines_ += static_cast<std::uint64_t>(std::ranges::count(chunk, '\n'));
  mixer_.feed(source, chunk, drained, Clock::now());
  after_change();
}

void OutputSink::close_source(int source) {
  mixer_.close_source(source, Clock::now());
  after_change();
}

void OutputSink::announce(std::string_view lines) {
  mixer_.announce(lines, Clock::now());
  after_change();
}

bool OutputSink::finish() {
  mixer_.flush(Clock::now());
  after_change();
  return !has_to_wait();
}

// Output to a full disk is not waited for.
bool OutputSink::has_to_wait() const {
  return console_.backlog() > 0 && console_.state() == Console::State::good;
}

bool OutputSink::takes_more() const {
  return !has_to_wait() || console_.backlog() < kMaxWaiting;
}

bool OutputSink::wants(int source) {
  const bool room = takes_more() && mixer_.waiting(source) < kMaxWaiting;
  stalled_ = stalled_ || !room;
  return room;
}

void OutputSink::after_change() {
  if (has_to_wait()) wait_writable();
  wait_deadline();
  // A source that is refused again stalls again.
  if (takes_more() && std::exchange(stalled_, false)) handlers_.on_room();
  const Console::State state = console_.state();
  if (state != Console::State::good && reported_.insert(state).second)
    handlers_.on_trouble(state, console_.error());
}

void OutputSink::wait_writable() {
  if (waiting_writable_) return;
  if (!writable_.is_open()) writable_.assign(console_.make_writable_event().release());
  waiting_writable_ = true;
  writable_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](boost::system::error_code error) {
                         waiting_writable_ = false;
                         if (error) return;
                         const bool written = console_.flush();
                         after_change();
                         if (written) handlers_.on_room();
                       });
}

void OutputSink::wait_deadline() {
  const auto deadline = mixer_.deadline();
  if (!deadline || *deadline == timer_.expiry()) return;
  timer_.expires_at(*deadline);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    mixer_.on_time(Clock::now());
    timer_.expires_at(Clock::time_point::min());
    after_change();
  });
}

}  // namespace acc::launcher
