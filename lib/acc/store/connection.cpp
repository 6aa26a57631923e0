// SPDX-License-Identifier: Apache-2.0
#include "acc/store/connection.hpp"

#include <boost/system/error_code.hpp>
#include <new>
#include <utility>

#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;

// From a client that has this much unread, nothing is read until it has read all of it.
constexpr std::size_t kPauseBytes = std::size_t{1} << 20U;
// After so many bytes to one client, others are served.
constexpr std::size_t kMaxBytesAtOnce = std::size_t{1} << 20U;
constexpr std::size_t kMaxPieces = 16;

}  // namespace

Connection::Connection(net::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits)
    : socket_(std::move(socket)),
      id_(id),
      owner_(owner),
      max_unsent_bytes_(limits.max_unsent_bytes),
      is_counted_(limits.is_counted),
      parser_(limits.request) {}

void Connection::start() {
  error_code ignored;  // without the options it is only slower
  socket_.set_option(net::tcp::no_delay(true), ignored);
  socket_.set_option(net::socket_base::keep_alive(true), ignored);
  error_code error;
  socket_.non_blocking(true, error);
  const std::size_t bytes = socket_.read_some(net::buffer(first_), error);
  if (error == net::error::would_block) return read();
  if (error) return input_ended(error);
  on_received(bytes);
}

void Connection::wake() {
  if (work_) {
    wake_due_ = true;
    return;
  }
  replies_.add_byte(kStopWaiting);
  flush();
  report_memory();
}

bool Connection::has_unread() {
  error_code error;
  return socket_.available(error) > 0 && !error;
}

void Connection::end() {
  if (open_) fail();
}

// Frees its memory now: the scheduler may keep the object for much longer.
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
  socket_.async_read_some(net::buffer(first_),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            if (!self->open_) return;
                            if (error) return self->input_ended(error);
                            self->on_received(bytes);
                          });
}

// Short requests are handled at once.
void Connection::on_received(std::size_t bytes) {
  const Next next = consume({first_.data(), bytes}, Clock::time_point::min());
  if (next == Next::ended) return;
  flush();
  report_memory();
  if (!open_ || next == Next::drain) return;
  if (next == Next::read && bytes < first_.size()) return read();
  owner_.schedule(shared_from_this());
}

bool Connection::work_until(Clock::time_point deadline) {
  if (!open_) return false;
  const std::span<char> scratch = owner_.scratch();
  const std::string unparsed = std::exchange(unparsed_, {});
  Next next = consume(unparsed, deadline);
  while (next == Next::read && Clock::now() < deadline) {
    error_code error;
    const std::size_t size = socket_.read_some(net::buffer(scratch.data(), scratch.size()), error);
    if (error == net::error::would_block) {
      flush();
      report_memory();
      if (open_) read();
      return false;
    }
    if (error) {
      input_ended(error);
      return false;
    }
    next = consume({scratch.data(), size}, deadline);
  }
  if (next == Next::ended) return false;
  flush();
  report_memory();
  return open_ && next != Next::drain;
}

// Carries out the complete requests in `bytes`, and keeps the rest. May end the connection.
Connection::Next Connection::consume(std::string_view bytes, Clock::time_point deadline) {
  consuming_ = true;
  const Next next = consume_some(bytes, deadline);
  consuming_ = false;
  if (!open_) close();
  return open_ ? next : Next::ended;
}

Connection::Next Connection::consume_some(std::string_view bytes, Clock::time_point deadline) try {
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
    if (!open_) return Next::ended;  // closed by the owner to free memory
    if (outcome == Service::Outcome::done) {
      work_.reset();
      if (std::exchange(wake_due_, false)) replies_.add_byte(kStopWaiting);
    }
    if (outcome == Service::Outcome::refused || replies_.cost() > max_unsent_bytes_) {
      fail();
      return Next::ended;
    }
    if (outcome == Service::Outcome::more && Clock::now() >= deadline) {
      unparsed_ = bytes;
      return Next::next_slice;
    }
  }
  if (!open_) return Next::ended;
  if (!parser_.broken()) return Next::read;
  flush();  // send the replies to earlier requests
  fail();
  return Next::ended;
} catch (const std::bad_alloc&) {
  fail();  // too large for this machine; closing it frees the memory
  return Next::ended;
}

void Connection::report_memory() {
  if (!is_counted_) return;
  std::size_t bytes = replies_.cost() + unparsed_.size();
  if (work_ || parser_.in_request()) bytes += parser_.memory();
  if (work_) bytes += work_->listed.cost();
  owner_.holds(id_, bytes);
}

// The client will send no more, or the connection is lost. After EOF it may still read its replies.
void Connection::input_ended(const error_code& error) {
  if (error != net::error::eof) return fail();
  input_ended_ = true;
  flush();
  if (!writing_) fail();
}

// Sends what the socket takes now, and the rest when it becomes writable.
void Connection::flush() {
  std::size_t sent_bytes = 0;
  while (!writing_ && !replies_.empty()) {
    std::array<net::const_buffer, kMaxPieces> buffers;
    std::size_t count = 0;
    for (const std::string_view piece : replies_.front(kMaxPieces)) {
      buffers[count++] = net::buffer(piece);
    }
    error_code error;
    const std::size_t size = write_failed_ ? 0 : socket_.write_some(std::span(buffers).first(count), error);
    if (error == net::error::would_block) return flush_when_writable();
    write_failed_ = write_failed_ || error;
    if (write_failed_) return replies_.clear();
    replies_.sent(size);
    sent_bytes += size;
    if (sent_bytes > kMaxBytesAtOnce && !replies_.empty()) return flush_when_writable();
  }
}

void Connection::flush_when_writable() {
  writing_ = true;
  socket_.async_wait(net::tcp::socket::wait_write, [self = shared_from_this()](const error_code& error) {
    if (!self->open_) return;
    self->writing_ = false;
    self->write_failed_ = self->write_failed_ || error;
    self->flush();
    self->report_memory();
    if (self->open_ && !self->writing_) self->resume();
  });
}

// All replies are sent: continues with the requests that were held back.
void Connection::resume() {
  if (input_ended_) return fail();
  if (!paused_) return;
  paused_ = false;
  owner_.schedule(shared_from_this());
}

}  // namespace acc::launcher
