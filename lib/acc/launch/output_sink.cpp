// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/output_sink.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace acc::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWaiting = std::size_t{1} << 20U;

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

// A full disk makes nobody wait.
bool OutputSink::has_to_wait() const {
  return console_.backlog() > 0 && console_.state() == Console::State::good;
}

bool OutputSink::takes_more() const {
  return !has_to_wait() || console_.backlog() < kMostWaiting;
}

bool OutputSink::wants(int source) {
  const bool room = takes_more() && mixer_.waiting(source) < kMostWaiting;
  stalled_ = stalled_ || !room;
  return room;
}

void OutputSink::after_change() {
  if (has_to_wait()) wait_writable();
  wait_deadline();
  // Whoever still finds no room stalls again.
  if (takes_more() && std::exchange(stalled_, false)) handlers_.on_room();
  const Console::State state = console_.state();
  if (state != Console::State::good && told_.insert(state).second)
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
