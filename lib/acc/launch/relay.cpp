// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"

namespace acc::launcher {

Channel make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("cannot create a pipe for a worker's output: ") + std::strerror(errno),
                 .hint = limit_hint(errno)});
  }
  Channel channel = {.ours = Descriptor(ends[0]), .workers = Descriptor(ends[1])};
  // Only our end: workers expect blocking writes.
  ::fcntl(channel.ours.get(), F_SETFL, O_NONBLOCK);
  return channel;
}

std::optional<Channel> make_pseudo_terminal(int like) {
  Channel channel = {.ours = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)),
                     .terminal = true};
  if (!channel.ours || ::grantpt(channel.ours.get()) != 0 || ::unlockpt(channel.ours.get()) != 0) {
    return std::nullopt;
  }
  char name[64] = {};
  if (::ptsname_r(channel.ours.get(), name, sizeof name) != 0) return std::nullopt;
  channel.workers = Descriptor(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode = {};
  if (!channel.workers || ::tcgetattr(channel.workers.get(), &mode) != 0) return std::nullopt;
  ::cfmakeraw(&mode);
  ::tcsetattr(channel.workers.get(), TCSANOW, &mode);
  copy_window_size(like, channel.ours.get());
  return channel;
}

void copy_window_size(int like, int pseudo_terminal) {
  winsize size = {};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(pseudo_terminal, TIOCSWINSZ, &size);
}

namespace {

// Reads more than the default size of a pipe, but not without limit: another process may never cease to
// write.
constexpr int kMaxLastReads = 32;

bool readable_now(int fd) {
  pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) == 1;
}

}  // namespace

Relay::Relay(boost::asio::io_context& loop, Descriptor from, bool terminal, RelayTarget target,
             std::span<char> buffer)
    : from_(loop, from.get()),
      terminal_(terminal),
      target_(std::move(target)),
      buffer_(buffer),
      rest_of_line_(loop) {
  from.release();
  if (target_.sink != nullptr) source_ = target_.sink->add_source();
}

void Relay::start() {
  if (waiting_ || !from_.is_open()) return;
  if (target_.sink != nullptr && !target_.sink->wants(source_)) return;
  waiting_ = true;
  from_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](boost::system::error_code error) {
                     self->waiting_ = false;
                     if (error || !self->from_.is_open()) return;
                     if (self->read_once() == State::ended) {
                       self->end();
                     } else {
                       self->start();
                     }
                   });
}

Relay::State Relay::read_once() {
  const ssize_t n = ::read(from_.native_handle(), buffer_.data(), buffer_.size());
  if (n < 0 && errno == EINTR) return State::more;
  if (n < 0 && errno == EAGAIN) return State::drained;
  // A pseudo-terminal whose other end is closed returns EIO.
  if (n <= 0) return State::ended;
  const auto size = static_cast<std::size_t>(n);
  const bool drained = !readable_now(from_.native_handle());
  pass_on({buffer_.data(), size}, drained);
  return drained ? State::drained : State::more;
}

void Relay::pass_on(std::string_view chunk, bool drained) {
  if (target_.tail != nullptr) target_.tail->append(chunk);
  if (target_.record) target_.record(chunk);
  if (target_.log) write_log(chunk);
  if (target_.sink == nullptr) return;
  if (target_.prefixer) {
    target_.sink->feed(source_, target_.prefixer->feed(chunk), true);
    last_read_ = std::chrono::steady_clock::now();
    wait_for_rest_of_line();
  } else {
    target_.sink->feed(source_, chunk, drained);
  }
}

// A prompt has no end of line, and nobody would see what is asked.
void Relay::wait_for_rest_of_line() {
  if (waiting_for_rest_ || !target_.prefixer->has_unfinished()) return;
  waiting_for_rest_ = true;
  rest_of_line_.expires_at(last_read_ + kUnfinishedAfter);
  rest_of_line_.async_wait([relay = weak_from_this()](boost::system::error_code error) {
    const auto self = relay.lock();
    if (error || !self || !self->from_.is_open()) return;
    self->waiting_for_rest_ = false;
    if (self->last_read_ + kUnfinishedAfter <= std::chrono::steady_clock::now())
      self->target_.sink->feed(self->source_, self->target_.prefixer->show_unfinished(), true);
    self->wait_for_rest_of_line();
  });
}

void Relay::write_log(std::string_view chunk) {
  if (const std::string reason = target_.log.write(chunk); !reason.empty()) target_.on_full_log(reason);
}

void Relay::finish() {
  if (!from_.is_open()) return;
  for (int reads = 0; reads < kMaxLastReads; ++reads) {
    if (!readable_now(from_.native_handle()) || read_once() == State::ended) break;
  }
  end();
}

void Relay::end() {
  from_.close();
  rest_of_line_.cancel();
  if (const std::uint64_t lost = target_.log.close(); lost > 0) target_.on_lost(lost);
  if (target_.sink == nullptr) return;
  if (target_.prefixer) target_.sink->feed(source_, target_.prefixer->finish(), true);
  target_.sink->close_source(source_);
}

void Relay::resize(int like) {
  if (terminal_ && from_.is_open()) copy_window_size(like, from_.native_handle());
}

}  // namespace acc::launcher
