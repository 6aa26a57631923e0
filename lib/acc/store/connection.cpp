// SPDX-License-Identifier: Apache-2.0
#include "acc/store/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <new>
#include <utility>

namespace acc {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// A client that leaves this much unread is not listened to until it has read all of it.
constexpr std::size_t kPauseBytes = std::size_t{1} << 20U;
// After so much of one client it is the others' turn.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20U;
constexpr std::size_t kMostPieces = 16;

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits)
    : socket_(std::move(socket)),
      id_(id),
      owner_(owner),
      most_unsent_bytes_(limits.most_unsent_bytes),
      parser_(limits.request) {}

void Connection::start() {
  error_code ignored;  // what cannot be set makes it slower, not wrong
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  error_code error;
  socket_.non_blocking(true, error);
  read();
}

void Connection::wake() {
  replies_.add_byte(kStopWaiting);
  flush();
}

bool Connection::end_if_silent() {
  if (!open_ || parser_.validated()) return false;
  error_code error;
  if (socket_.available(error) > 0 && !error) return true;
  fail();
  return false;
}

void Connection::close() {
  open_ = false;
  error_code ignored;
  socket_.close(ignored);
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

void Connection::received(std::size_t bytes) {
  consume({first_.data(), bytes});
  const std::span<char> scratch = owner_.scratch();
  std::size_t taken = bytes;
  bool more = bytes == first_.size();
  while (more && open_ && !paused_ && taken < kTurnBytes) {
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(scratch.data(), scratch.size()), error);
    if (error == asio::error::would_block) break;
    if (error) return input_ended(error);
    consume({scratch.data(), size});
    taken += size;
    more = size == scratch.size();
  }
  if (!open_) return;
  flush();
  if (!paused_) read();
}

// Carries out what is whole in `bytes`. May pause or end the connection.
void Connection::consume(std::string_view bytes) try {
  while (true) {
    if (replies_.size() > kPauseBytes) {
      flush();
      if (writing_) {
        unparsed_ = bytes;
        paused_ = true;
        return;
      }
    }
    auto request = parser_.next(bytes);
    if (!request) break;
    const bool answered = owner_.handle(id_, std::move(*request), replies_);
    if (!answered || replies_.cost() > most_unsent_bytes_) return fail();
  }
  if (!parser_.broken()) return;
  flush();  // what it asked before that is answered
  fail();
} catch (const std::bad_alloc&) {
  fail();  // its request or its replies are too much for this machine, and what they hold goes with it
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
    std::array<asio::const_buffer, kMostPieces> buffers;
    std::size_t count = 0;
    for (const std::string_view piece : replies_.front(kMostPieces)) {
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
    if (!self->writing_) self->resume();
  });
}

// All replies are out: what was held back for them goes on.
void Connection::resume() {
  if (input_ended_) return fail();
  if (!paused_) return;
  paused_ = false;
  const std::string bytes = std::exchange(unparsed_, {});
  consume(bytes);
  if (!open_) return;
  flush();
  if (!paused_) read();
}

}  // namespace acc
