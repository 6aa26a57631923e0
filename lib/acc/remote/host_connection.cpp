// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/host_connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/subprocess/command.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxErrors = std::size_t{16} << 10U;

}  // namespace

void HostConnection::open(const std::vector<std::string>& command, const Environment& environment,
                          std::optional<rlimit> open_files) {
  const auto program = find_program(command.front(), environment);
  if (program.empty()) {
    throw Error({.kind = ErrorKind::usage,
                 .what = "is not installed",
                 .where = command.front(),
                 .hint = "apt-get install openssh-client; ACC_RSH names another program"});
  }
  asio::readable_pipe theirs_in(loop_);
  asio::writable_pipe theirs_out(loop_);
  asio::writable_pipe theirs_err(loop_);
  asio::connect_pipe(theirs_in, in_);
  asio::connect_pipe(out_, theirs_out);
  asio::connect_pipe(err_, theirs_err);
  const ProcessLauncher launcher = {.environment = environment,
                                    .in = theirs_in.native_handle(),
                                    .out = theirs_out.native_handle(),
                                    .err = theirs_err.native_handle(),
                                    .open_files = open_files};
  process_.emplace(launcher(loop_.get_executor(), program, command));
  restart_silence();
  open_streams_ = 2;
  read_frames();
  read_errors();
  process_->async_wait([self = shared_from_this()](error_code error, int) {
    if (error) return;
    self->status_ = to_exit_status(self->process_->native_exit_code());
    self->process_->detach();
    self->in_.close();
    self->end_if_over();
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
  if (std::exchange(stalled_, false)) read_frames();
}

void HostConnection::read_frames() {
  out_.async_read_some(asio::buffer(buffer_),
                       [self = shared_from_this()](error_code error, std::size_t size) {
                         if (error) return self->stream_ended();
                         self->restart_silence();
                         try {
                           for (const Frame& frame : self->frames_.feed({self->buffer_.data(), size}))
                             self->events_.on_frame(frame);
                         } catch (const Error& wrong) {
                           self->errors_ += std::string("\n") + wrong.what();
                           self->kill();
                           return self->stream_ended();
                         }
                         self->stalled_ = !self->events_.takes_output();
                         if (!self->stalled_) self->read_frames();
                       });
}

void HostConnection::read_errors() {
  err_.async_read_some(asio::buffer(error_buffer_),
                       [self = shared_from_this()](error_code error, std::size_t size) {
                         if (error) return self->stream_ended();
                         self->errors_.append(self->error_buffer_.data(), size);
                         if (self->errors_.size() > kMaxErrors)
                           self->errors_.erase(0, self->errors_.size() - kMaxErrors);
                         self->read_errors();
                       });
}

void HostConnection::stream_ended() {
  --open_streams_;
  end_if_over();
}

void HostConnection::end_if_over() {
  if (status_ && open_streams_ == 0) events_.on_end();
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
