// SPDX-License-Identifier: Apache-2.0
#include "acc/store/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <new>
#include <utility>

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// A client that leaves this much unread is not listened to until it has read all of it.
constexpr std::size_t kPauseBytes = std::size_t{1} << 20U;
// After so much of one client it is the others' turn.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxPieces = 16;

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits)
    : socket_(std::move(socket)),
      id_(id),
      owner_(owner),
      max_unsent_bytes_(limits.max_unsent_bytes),
      is_counted_(limits.is_counted),
      parser_(limits.request) {}

void Connection::start() {
  error_code ignored;  // what cannot be set makes it slower, not wrong
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  error_code error;
  socket_.non_blocking(true, error);
  const std::size_t bytes = socket_.read_some(asio::buffer(first_), error);
  if (error == asio::error::would_block) return read();
  if (error) return input_ended(error);
  received(bytes);
}

void Connection::wake() {
  if (work_) {
    wake_due_ = true;
    return;
  }
  replies_.add_byte(kStopWaiting);
  flush();
  count();
}

bool Connection::has_unread() {
  error_code error;
  return socket_.available(error) > 0 && !error;
}

void Connection::end() {
  if (open_) fail();
}

// Its turn, which keeps it, may come much later: what it holds goes now.
void Connection::close() {
  open_ = false;
  error_code ignored;
  socket_.close(ignored);
  if (consuming_) return;
  parser_ = RequestParser({});
  replies_.clear();
  work_.reset();
  unparsed_ = {};
}

void Connection::fail() {
  close();
  owner_.closed(id_);
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(first_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            if (!self->open_) return;
                            if (error) return self->input_ended(error);
                            self->received(bytes);
                          });
}

// What is short is done at once.
void Connection::received(std::size_t bytes) {
  const Next next = consume({first_.data(), bytes}, Clock::time_point::min());
  if (next == Next::ended) return;
  flush();
  count();
  if (!open_ || next == Next::drain) return;
  if (next == Next::read && bytes < first_.size()) return read();
  owner_.schedule(shared_from_this());
}

bool Connection::work_until(Clock::time_point until) {
  if (!open_) return false;
  const std::span<char> scratch = owner_.scratch();
  const std::string left = std::exchange(unparsed_, {});
  Next next = consume(left, until);
  while (next == Next::read && Clock::now() < until) {
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(scratch.data(), scratch.size()), error);
    if (error == asio::error::would_block) {
      flush();
      count();
      if (open_) read();
      return false;
    }
    if (error) {
      input_ended(error);
      return false;
    }
    next = consume({scratch.data(), size}, until);
  }
  if (next == Next::ended) return false;
  flush();
  count();
  return open_ && next != Next::drain;
}

// Carries out what is whole in `bytes`, and keeps what it does not come to. May end the connection.
Connection::Next Connection::consume(std::string_view bytes, Clock::time_point until) {
  consuming_ = true;
  const Next next = consume_some(bytes, until);
  consuming_ = false;
  if (!open_) close();
  return open_ ? next : Next::ended;
}

Connection::Next Connection::consume_some(std::string_view bytes, Clock::time_point until) try {
  while (open_) {
    if (replies_.size() > kPauseBytes) {
      flush();
      if (writing_) {
        unparsed_ = bytes;
        paused_ = true;
        return Next::drain;
      }
    }
    if (!work_) {
      auto request = parser_.next(bytes);
      if (!request) break;
      work_.emplace(Work{.request = std::move(*request)});
    }
    const Service::Outcome outcome = owner_.carry_out(id_, *work_, replies_);
    if (!open_) return Next::ended;  // so that others can be served
    if (outcome == Service::Outcome::done) {
      work_.reset();
      if (std::exchange(wake_due_, false)) replies_.add_byte(kStopWaiting);
    }
    if (outcome == Service::Outcome::refused || replies_.cost() > max_unsent_bytes_) {
      fail();
      return Next::ended;
    }
    if (outcome == Service::Outcome::more && Clock::now() >= until) {
      unparsed_ = bytes;
      return Next::turn;
    }
  }
  if (!open_) return Next::ended;
  if (!parser_.broken()) return Next::read;
  flush();  // what it asked before that is answered
  fail();
  return Next::ended;
} catch (const std::bad_alloc&) {
  fail();  // its request or its replies are too much for this machine, and what they hold goes with it
  return Next::ended;
}

void Connection::count() {
  if (!is_counted_) return;
  std::size_t bytes = replies_.cost() + unparsed_.size();
  if (work_ || parser_.in_request()) bytes += parser_.held();
  if (work_) bytes += work_->listed.cost();
  owner_.holds(id_, bytes);
}

// The client will send no more, or the connection is lost. Nobody waits for it now, but it may still be
// reading.
void Connection::input_ended(const error_code& error) {
  if (error != asio::error::eof) return fail();
  input_ended_ = true;
  flush();
  if (!writing_) fail();
}

// Sends what the socket takes, and the rest as soon as it takes more.
void Connection::flush() {
  std::size_t taken = 0;
  while (!writing_ && !replies_.empty()) {
    std::array<asio::const_buffer, kMaxPieces> buffers;
    std::size_t count = 0;
    for (const std::string_view piece : replies_.front(kMaxPieces)) {
      buffers[count++] = asio::buffer(piece);
    }
    error_code error;
    const std::size_t size = unreachable_ ? 0 : socket_.write_some(std::span(buffers).first(count), error);
    if (error == asio::error::would_block) return flush_when_writable();
    unreachable_ = unreachable_ || error;
    if (unreachable_) return replies_.clear();
    replies_.sent(size);
    taken += size;
    if (taken > kTurnBytes && !replies_.empty()) return flush_when_writable();
  }
}

void Connection::flush_when_writable() {
  writing_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_write, [self = shared_from_this()](const error_code& error) {
    if (!self->open_) return;
    self->writing_ = false;
    self->unreachable_ = self->unreachable_ || error;
    self->flush();
    self->count();
    if (self->open_ && !self->writing_) self->resume();
  });
}

// All replies are out: what was held back for them goes on.
void Connection::resume() {
  if (input_ended_) return fail();
  if (!paused_) return;
  paused_ = false;
  owner_.schedule(shared_from_this());
}

}  // namespace acc::launcher
