// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/host_connection.hpp"

#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/launch/relay.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxErrors = std::size_t{16} << 10U;
// More than a pipe holds, but not without limit: another process may never cease to write.
constexpr int kMaxReadsAtEnd = 32;

}  // namespace

void HostConnection::open(const std::vector<std::string>& command, const Environment& environment,
                          Child child, std::optional<rlimit> open_files) {
  const auto program = find_program(command.front(), environment);
  if (program.empty()) {
    throw Error({.kind = ErrorKind::usage,
                 .what = "is not installed",
                 .where = command.front(),
                 .hint = "apt-get install openssh-client; ACC_RSH names another program"});
  }
  asio::readable_pipe theirs_in(loop_);
  error_code error;
  asio::connect_pipe(theirs_in, in_, error);
  if (error) {
    throw Error({.kind = ErrorKind::system,
                 .what = "cannot create a pipe: " + error.message(),
                 .where = command.front(),
                 .hint = limit_hint(error.value())});
  }
  Channel out = make_pipe();
  Channel err = make_pipe();
  ProcessLauncher launcher = {.environment = environment,
                              .in = theirs_in.native_handle(),
                              .out = out.workers.get(),
                              .err = err.workers.get(),
                              .open_files = open_files};
  if (child == Child::agent) {
    launcher.death_signal = SIGTERM;  // it lets its workers save what they have
  } else {
    launcher.ignored_signals = {SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
    launcher.death_signal = SIGHUP;  // with which ssh ends a ProxyCommand, too, so that it is not ignored
  }
  process_.emplace(launcher(loop_.get_executor(), program, command));
  out_.assign(out.ours.release());
  err_.assign(err.ours.release());
  restart_silence();
  wait_for_frames();
  wait_for_errors();
  process_->async_wait([self = shared_from_this()](error_code cancelled, int) {
    if (!cancelled) self->on_child_ended();
  });
}

void HostConnection::send(FrameKind kind, std::string_view payload) {
  if (!process_ || !in_.is_open()) return;
  queue_ += encode(kind, payload);
  write_queue();
}

void HostConnection::kill() {
  if (process_ && !status_) ::kill(-process_->id(), SIGKILL);
}

void HostConnection::resume() {
  if (!stalled_ || !events_.takes_output()) return;
  stalled_ = false;
  wait_for_frames();
}

void HostConnection::wait_for_frames() {
  out_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error || !self->read_frames()) return;
    self->stalled_ = !self->events_.takes_output();
    if (!self->stalled_) self->wait_for_frames();
  });
}

void HostConnection::wait_for_errors() {
  err_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (!error && self->read_errors()) self->wait_for_errors();
  });
}

// Returns false when no more can come, and when what comes is something else.
bool HostConnection::read_frames() {
  const auto chunk = read_now(out_);
  if (!chunk) return false;
  if (!chunk->empty()) restart_silence();
  try {
    for (const Frame& frame : frames_.feed(*chunk)) events_.on_frame(frame);
  } catch (const Error& wrong) {
    errors_ += std::string("\n") + wrong.what();
    kill();
    out_.close();
  }
  return out_.is_open();
}

bool HostConnection::read_errors() {
  const auto chunk = read_now(err_);
  if (!chunk) return false;
  errors_ += *chunk;
  if (errors_.size() > kMaxErrors) errors_.erase(0, errors_.size() - kMaxErrors);
  return true;
}

// What there is now; nullopt at the end of the stream.
std::optional<std::string_view> HostConnection::read_now(asio::posix::stream_descriptor& stream) {
  if (!stream.is_open()) return std::nullopt;
  const ssize_t size = ::read(stream.native_handle(), buffer_.data(), buffer_.size());
  if (size > 0) return std::string_view(buffer_.data(), static_cast<std::size_t>(size));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::string_view();
  return std::nullopt;
}

// What it has written is in the pipes, which need not end: what it has started may still hold them.
void HostConnection::on_child_ended() {
  status_ = to_exit_status(process_->native_exit_code());
  process_->detach();
  for (int reads = 0; reads < kMaxReadsAtEnd && read_errors(); ++reads) {
  }
  for (int reads = 0; reads < kMaxReadsAtEnd && read_frames(); ++reads) {
  }
  error_code ignored;
  in_.close(ignored);
  out_.close(ignored);
  err_.close(ignored);
  events_.on_end();
}

void HostConnection::write_queue() {
  if (!writing_.empty() || queue_.empty()) return;
  writing_ = std::exchange(queue_, {});
  asio::async_write(in_, asio::buffer(writing_), [self = shared_from_this()](error_code error, std::size_t) {
    self->writing_.clear();
    if (!error) self->write_queue();
  });
}

}  // namespace acc::launcher
