// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/relay.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace acc::launcher {
namespace {

// More than a pipe holds by default; a process that never stops writing must not keep finish() for ever.
constexpr int kMostLastReads = 32;

bool readable_now(int fd) {
  pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) == 1;
}

}  // namespace

Relay::Relay(boost::asio::io_context& loop, Descriptor from, bool terminal, RelayTarget target,
             std::span<char> buffer)
    : from_(loop, from.get()), terminal_(terminal), target_(std::move(target)), buffer_(buffer) {
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
  // EIO is how a terminal says that nobody holds its other end.
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
  } else {
    target_.sink->feed(source_, chunk, drained);
  }
}

void Relay::write_log(std::string_view chunk) {
  if (const std::string reason = target_.log.write(chunk); !reason.empty()) target_.on_full_log(reason);
}

void Relay::finish() {
  if (!from_.is_open()) return;
  for (int reads = 0; reads < kMostLastReads; ++reads) {
    if (!readable_now(from_.native_handle()) || read_once() == State::ended) break;
  }
  end();
}

void Relay::end() {
  from_.close();
  if (const std::uint64_t lost = target_.log.close(); lost > 0) target_.on_lost(lost);
  if (target_.sink == nullptr) return;
  if (target_.prefixer) target_.sink->feed(source_, target_.prefixer->finish(), true);
  target_.sink->close_source(source_);
}

void Relay::resize(int like) {
  if (terminal_ && from_.is_open()) copy_window_size(like, from_.native_handle());
}

}  // namespace acc::launcher
