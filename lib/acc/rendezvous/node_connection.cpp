// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/store/network.hpp"
#include "acc/store/peer_user.hpp"

namespace acc::launcher {

std::string silence_text(const std::string& node, const Silence& silence) {
  const std::string duration = seconds_text(std::chrono::floor<std::chrono::seconds>(silence.duration));
  if (silence.is_over) return fmt::format("{} answers again, after {}", node, duration);
  return fmt::format("{} has been silent for {}; it counts as lost after {}", node, duration,
                     seconds_text(silence.timeout));
}

namespace {

using boost::system::error_code;

constexpr std::size_t kMaxUnsent = std::size_t{16} << 20U;
constexpr std::size_t kMaxUnsentReports = std::size_t{2} << 20U;
// Heartbeats in the time after which silence is reported: two may be lost or late.
constexpr int kHeartbeats = 4;

// Errors that mean that the other process has ended. Other errors may be the network's.
bool means_ended(const error_code& error) {
  return error == net::error::eof || error == net::error::connection_reset ||
         error == net::error::broken_pipe;
}

std::string numeric(const net::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

std::string address_of_peer(const net::tcp::socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "" : numeric(endpoint.address());
}

}  // namespace

NodeConnection::NodeConnection(net::tcp::socket socket, std::chrono::milliseconds timeout,
                               SilenceReports reports)
    : socket_(std::move(socket)),
      peer_address_(address_of_peer(socket_)),
      timer_(socket_.get_executor()),
      reports_(reports),
      heartbeat_(std::min(timeout, reports.first) / kHeartbeats) {
  error_code ignored;
  socket_.set_option(net::tcp::no_delay(true), ignored);
  set_timeout(timeout);
}

void NodeConnection::set_timeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  // A little longer than our own timeout, so that silence is always reported in the same way.
  set_user_timeout(timeout + heartbeat_ * kHeartbeats);
}

// How long TCP waits for an acknowledgment. After that it answers the other side that nobody is here.
void NodeConnection::set_user_timeout(std::chrono::milliseconds timeout) {
  error_code ignored;
  socket_.set_option(net::user_timeout(static_cast<int>(timeout.count())), ignored);
}

void NodeConnection::set_handlers(std::function<void(NodeMessage)> on_message,
                                  std::function<void(ConnectionLoss)> on_lost) {
  on_message_ = std::move(on_message);
  on_lost_ = std::move(on_lost);
}

void NodeConnection::start() {
  on_bytes();
  wait();
  read();
}

void NodeConnection::start_as_stranger() {
  is_pending_ = true;
  is_accepted_ = true;
  max_message_ = kMaxStrangersMessage;
  on_bytes();
  wait();
  error_code error;
  socket_.non_blocking(true, error);
  const std::size_t bytes = socket_.read_some(net::buffer(buffer_), error);
  if (error) return read();
  on_received(bytes);
}

void NodeConnection::read() {
  socket_.async_read_some(net::buffer(buffer_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            if (!self->open_) return;
                            self->note_awake();
                            if (!error) return self->on_received(bytes);
                            self->all_is_read_ = true;
                            const bool is_old = self->woken_ && !self->closing_;
                            self->fail(is_old ? ConnectionLoss{"silent while this process stood still", false}
                                              : ConnectionLoss{error.message(), means_ended(error)});
                          });
}

void NodeConnection::on_received(std::size_t bytes) {
  on_bytes();
  if (closing_) return read();
  if (const auto first = std::exchange(on_next_bytes_, nullptr)) first();
  received_.append(buffer_.data(), bytes);
  std::size_t begin = 0;
  for (std::size_t end = received_.find('\n', received_.size() - bytes); end != std::string::npos;
       end = received_.find('\n', begin)) {
    try {
      NodeMessage message = decode(std::string_view(received_).substr(begin, end - begin));
      // A copy, since the handler may set another one.
      const auto on_message = on_message_;
      if (!std::holds_alternative<Heartbeat>(message)) on_message(std::move(message));
    } catch (const Error& error) {
      return fail({error.what(), true});
    }
    if (!open_) return;
    // Whoever was dismissed by the handler is read until it ends.
    if (closing_) return lingers_ ? read() : void();
    begin = end + 1;
  }
  received_.erase(0, begin);
  if (received_.size() > max_message_) refuse_message();
  if (open_) read();
}

// Says why: to both sides the end of the connection would look like that of the other process.
void NodeConnection::refuse_message() {
  received_ = {};
  const std::string length = fmt::format("more than {} KiB", max_message_ >> 10U);
  log::debug("rendezvous: a message of {} has {}: its connection ends", peer_address(), length);
  const auto on_lost = std::exchange(on_lost_, nullptr);
  if (is_accepted_) {
    const std::string text = fmt::format("{} refuses a message of this node: it has {}", host_name(), length);
    dismiss(RoundEnds{{.text = text, .exit_code = exit_code(ErrorKind::usage)}});
  } else {
    dismiss(Leave{.reason = "the host's message has " + length});
  }
  if (on_lost) on_lost({"a message of " + length, true});
}

void NodeConnection::send(const NodeMessage& message) {
  if (!open_ || closing_) return;
  // Who looks at a job over a slow network must not be lost for it, nor hold up what the job needs.
  const bool may_be_dropped = std::holds_alternative<RankReport>(message);
  if (may_be_dropped && queued_.size() + sending_.size() > kMaxUnsentReports) return;
  queued_ += encode(message);
  if (queued_.size() > kMaxUnsent) return fail({"it does not read its messages", false});
  if (!writing_) write();
}

void NodeConnection::write() {
  writing_ = true;
  sending_.swap(queued_);
  net::async_write(socket_, net::buffer(sending_),
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     self->writing_ = false;
                     self->sending_.clear();
                     if (!self->open_) return;
                     // What the other side sent before it ended is still read.
                     if (error && self->closing_) return self->end();
                     if (error) return;
                     if (!self->queued_.empty()) return self->write();
                     if (self->closing_) self->all_is_sent();
                   });
}

void NodeConnection::wait() {
  timer_.expires_after(heartbeat_);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->open_) self->check_silence();
  });
}

// The other side may have given this one up while it was stopped. Until something is heard that was sent
// since, a reset is no sign that it has ended.
void NodeConnection::note_awake() {
  const auto now = net::steady_clock::now();
  if (now - last_awake_ > timeout_) woken_ = now;
  last_awake_ = now;
}

void NodeConnection::check_silence() {
  note_awake();
  const auto now = Clock::now();
  if (end_due_ && now >= *end_due_) return end();
  // As long as TCP sends the last message again.
  if (closing_ && now - last_bytes_ > 2 * timeout_) return end();
  if (!closing_ && now - last_bytes_ > timeout_) {
    fail({"silent for " + seconds_text(timeout_), false});
    // A process that is stopped does not close its side.
    if (open_) wait();
    return;
  }
  if (now >= report_due_) report_silence(now);
  if (!closing_) send(Heartbeat{});
  if (open_) wait();
}

void NodeConnection::count_silence_from(Clock::time_point now) {
  last_bytes_ = now;
  report_due_ = now + reports_.first;
}

void NodeConnection::on_bytes() {
  if (woken_ && net::steady_clock::now() - *woken_ >= heartbeat_) woken_.reset();
  const auto now = Clock::now();
  const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_bytes_);
  count_silence_from(now);
  if (!std::exchange(silence_reported_, false)) return;
  if (const auto report = on_silence_; report && !closing_)
    report({.duration = silence, .timeout = timeout_, .is_over = true});
}

void NodeConnection::report_silence(Clock::time_point now) {
  silence_reported_ = true;
  report_due_ += reports_.interval;
  if (const auto report = on_silence_; report && !closing_)
    report({.duration = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_bytes_),
            .timeout = timeout_});
}

void NodeConnection::fail(const ConnectionLoss& loss) {
  if (!open_) return;
  const auto on_lost = std::exchange(on_lost_, nullptr);
  lingers_ = !loss.peer_has_ended;
  // What was sent last is unacknowledged since before this silence, and stays for one more timeout.
  if (lingers_) set_user_timeout(3 * timeout_);
  count_silence_from(Clock::now());
  if (loss.peer_has_ended) end();
  if (on_lost) on_lost(loss);
  close();
}

void NodeConnection::close(std::function<void()> on_ended) {
  if (!open_) {
    if (on_ended) on_ended();
    return;
  }
  closing_ = true;
  on_lost_ = nullptr;
  if (on_ended) on_ended_ = std::move(on_ended);
  if (!writing_ && queued_.empty()) all_is_sent();
}

void NodeConnection::dismiss(const NodeMessage& message) {
  if (!open_ || closing_) return;
  send(message);
  lingers_ = true;
  end_due_ = Clock::now() + timeout_;
  close();
}

// To close a socket before all was read resets the connection: the other side would hear that this process
// has ended, and perhaps not the last message.
void NodeConnection::all_is_sent() {
  if (!lingers_ || all_is_read_) return end();
  error_code ignored;
  socket_.shutdown(net::tcp::socket::shutdown_send, ignored);
}

void NodeConnection::end() {
  open_ = false;
  error_code ignored;
  socket_.shutdown(net::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  timer_.cancel();
  received_ = {};
  if (const auto on_ended = std::exchange(on_ended_, nullptr)) on_ended();
}

bool NodeConnection::has_unread() {
  error_code error;
  return socket_.available(error) > 0 && !error;
}

bool NodeConnection::is_own_users() const {
  return may_be_own_user(socket_);
}

std::string NodeConnection::local_address() const {
  error_code error;
  const auto endpoint = socket_.local_endpoint(error);
  return error ? "" : numeric(endpoint.address());
}

}  // namespace acc::launcher
