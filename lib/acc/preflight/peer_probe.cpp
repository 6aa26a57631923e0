// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/peer_probe.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kBuffer = std::size_t{1} << 20U;
constexpr char kTime = 't';
constexpr char kData = 'd';

/// The first bytes of a connection: the token, what is asked for, and the turn.
constexpr std::size_t kRequestSize = kTokenSize + 1 + 8;

std::string request_of(const PeerAddress& peer, char what, int turn) {
  return fmt::format("{}{}{:08x}", peer.token, what, turn);
}

std::string random_token() {
  std::string token;
  while (token.size() < kTokenSize) token += fmt::format("{:08x}", random_number());
  return token;
}

double wall_clock() {
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

auto with(error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

/// Closes a socket when the time is over.
class TimeLimit {
 public:
  TimeLimit(asio::ip::tcp::socket& socket, Clock::duration limit) : timer_(socket.get_executor(), limit) {
    timer_.async_wait([&socket, expired = expired_](error_code error) {
      // The handler of a timer that has expired cannot be cancelled any more.
      if (error || !expired->has_value()) return;
      expired->emplace(true);
      socket.close(error);
    });
  }
  ~TimeLimit() { expired_->reset(); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  bool expired() const { return expired_->value(); }

 private:
  /// Empty after the end of this object.
  std::shared_ptr<std::optional<bool>> expired_ = std::make_shared<std::optional<bool>>(false);
  asio::steady_timer timer_;
};

std::string reason(const error_code& error, const TimeLimit& limit, const char* expired,
                   std::chrono::milliseconds time) {
  return limit.expired() ? fmt::format("{} within {}", expired, seconds_text(time)) : error.message();
}

/// Returns why there is no connection; empty: there is one.
asio::awaitable<std::string> open(asio::ip::tcp::socket& socket, PeerAddress peer,
                                  std::chrono::milliseconds time) {
  const TimeLimit limit(socket, time);
  error_code error;
  const auto address = asio::ip::make_address(peer.address, error);
  if (!error) co_await socket.async_connect({address, peer.port}, with(error));
  co_return error ? reason(error, limit, "no answer", time) : "";
}

// For IPv6 and IPv4, where there is IPv6.
std::shared_ptr<Listener> listen(asio::io_context& loop) {
  try {
    return listen_on(loop, {"::"}, 0).front();
  } catch (const Error&) {
    return listen_on(loop, {"0.0.0.0"}, 0).front();
  }
}

}  // namespace

void TransferSpeed::add(std::uint64_t bytes, TimePoint now) {
  all_bytes_ += bytes;
  if (late_begin_ != begin_)
    late_bytes_ += bytes;
  else if (now - begin_ >= length_ / 4)
    late_begin_ = now;
}

double TransferSpeed::bytes_per_second(TimePoint now) const {
  const bool has_late_part = late_begin_ != begin_ && now - late_begin_ >= length_ / 2;
  const double seconds = Seconds(now - (has_late_part ? late_begin_ : begin_)).count();
  return seconds > 0 ? static_cast<double>(has_late_part ? late_bytes_ : all_bytes_) / seconds : 0;
}

PeerProbe::PeerProbe(asio::io_context& loop, int rank, ProbeLimits limits)
    : loop_(loop),
      rank_(rank),
      limits_(limits),
      token_(random_token()),
      listener_(listen(loop)),
      changed_(loop, Clock::time_point::max()) {
  listener_->start(
      [this](Socket socket) { asio::co_spawn(loop_, serve(std::move(socket)), asio::detached); });
}

PeerProbe::~PeerProbe() {
  listener_->close();
}

asio::awaitable<void> PeerProbe::serve(Socket socket) {
  std::string request(kRequestSize, '\0');
  error_code error;
  {
    const TimeLimit limit(socket, limits_.answer);
    co_await asio::async_read(socket, asio::buffer(request), with(error));
    if (error || !request.starts_with(token_)) co_return;
    if (request[kTokenSize] == kTime) {
      const std::array<double, 1> now = {wall_clock()};
      co_await asio::async_write(socket, asio::buffer(now), with(error));
      co_return;
    }
  }
  int turn = -1;
  std::from_chars(request.data() + kTokenSize + 1, request.data() + kRequestSize, turn, 16);
  if (request[kTokenSize] == kData) co_await serve_data(socket, turn);
}

asio::awaitable<void> PeerProbe::serve_data(Socket& socket, int turn) {
  const TimeLimit limit(socket, 2 * limits_.partner);
  error_code error;
  while (turn_ < turn && !limit.expired()) co_await changed_.async_wait(with(error));
  const std::vector<char> bytes(kBuffer);
  error.clear();
  // Until the receiver has enough and closes the connection. As much at once as the kernel takes.
  while (!error) co_await socket.async_write_some(asio::buffer(bytes), with(error));
  served_ = std::max(served_, turn);
  changed_.cancel();
}

asio::awaitable<ConnectionCheck> PeerProbe::connect(PeerAddress peer) {
  ConnectionCheck result{.from = rank_, .to = peer.rank};
  Socket socket(loop_);
  result.error = co_await open(socket, peer, limits_.connect);
  if (!result.error.empty()) co_return result;
  const TimeLimit limit(socket, limits_.answer);
  error_code error;
  co_await asio::async_write(socket, asio::buffer(request_of(peer, kTime, 0)), with(error));
  const double request_time = wall_clock();
  const auto began = Clock::now();
  std::array<double, 1> peer_clock = {};
  if (!error) co_await asio::async_read(socket, asio::buffer(peer_clock), with(error));
  if (error) {
    result.error = reason(error, limit, "connected, but no answer", limits_.answer);
  } else {
    result.round_trip = Seconds(Clock::now() - began).count();
    result.clock_offset = peer_clock[0] - (request_time + result.round_trip / 2);
  }
  co_return result;
}

asio::awaitable<Transfer> PeerProbe::receive(PeerAddress peer, int turn, std::chrono::milliseconds time) {
  Transfer result{.from = peer.rank, .to = rank_};
  Socket socket(loop_);
  std::vector<char> buffer(kBuffer);
  error_code error;
  result.error = co_await open(socket, peer, limits_.connect);
  if (!result.error.empty()) co_return result;
  {
    const TimeLimit limit(socket, limits_.partner);
    co_await asio::async_write(socket, asio::buffer(request_of(peer, kData, turn)), with(error));
    if (!error) co_await asio::async_read(socket, asio::buffer(buffer.data(), 1), with(error));
    if (error) {
      result.error = limit.expired() ? "did not come to the measurement" : error.message();
      co_return result;
    }
  }
  TransferSpeed speed(Clock::now(), time);
  const TimeLimit limit(socket, time);
  while (!error) {
    const std::size_t size = co_await socket.async_read_some(asio::buffer(buffer), with(error));
    if (!error) speed.add(size, Clock::now());
  }
  if (!limit.expired())
    result.error = error.message();
  else
    result.bytes_per_second = speed.bytes_per_second(Clock::now());
  co_return result;
}

asio::awaitable<void> PeerProbe::wait_until_served(int turn) {
  const auto deadline = Clock::now() + limits_.partner;
  asio::steady_timer timeout(loop_, deadline);
  timeout.async_wait([this](error_code error) {
    if (!error) changed_.cancel();
  });
  error_code ignored;
  while (served_ < turn && Clock::now() < deadline) co_await changed_.async_wait(with(ignored));
}

asio::awaitable<Transfer> PeerProbe::measure(PeerAddress peer, int turn, std::chrono::milliseconds time) {
  enter(turn);
  if (rank_ > peer.rank) co_await wait_until_served(turn);
  Transfer result = co_await receive(peer, turn, time);
  if (rank_ < peer.rank) co_await wait_until_served(turn);
  co_return result;
}

void PeerProbe::enter(int turn) {
  turn_ = turn;
  changed_.cancel();
}

void PeerProbe::end_turns() {
  enter(std::numeric_limits<int>::max());
}

}  // namespace acc::launcher
