// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "acc/preflight/node_health.hpp"
#include "acc/preflight/peer_list.hpp"
#include "acc/store/listener.hpp"

namespace acc::launcher {

/// The speed of a transfer. TCP is not at its full speed in the beginning, which counts only if not much more
/// was received: a receiver that the kernel did not let run gets nothing for a while, and then all at once.
class TransferSpeed {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Of a transfer that takes so long.
  TransferSpeed(TimePoint begin, std::chrono::milliseconds length)
      : begin_(begin), length_(length), late_begin_(begin) {}

  void add(std::uint64_t bytes, TimePoint now);

  double bytes_per_second(TimePoint now) const;

 private:
  TimePoint begin_;
  std::chrono::milliseconds length_;
  std::uint64_t all_bytes_ = 0;
  /// What came after the beginning.
  TimePoint late_begin_;
  std::uint64_t late_bytes_ = 0;
};

/// How long a probe waits for a peer.
struct ProbeLimits {
  std::chrono::milliseconds connect = std::chrono::seconds(3);
  /// A connection is made by the peer's kernel; to answer, its acc must be let run.
  std::chrono::milliseconds answer = std::chrono::seconds(10);
  /// A partner that could not measure with the one before comes this much later.
  std::chrono::milliseconds partner = std::chrono::seconds(10);
};

/// Opens connections to other nodes, on a port that the kernel chooses, as those of Gloo and NCCL, and
/// answers theirs. Who does not send the token is not answered.
class PeerProbe {
 public:
  /// Listens. `loop` outlives it, and its coroutines end with the loop. Throws Error{system}.
  PeerProbe(boost::asio::io_context& loop, int rank, ProbeLimits limits = {});
  ~PeerProbe();
  PeerProbe(const PeerProbe&) = delete;
  PeerProbe& operator=(const PeerProbe&) = delete;

  std::uint16_t port() const { return listener_->port(); }
  const std::string& token() const { return token_; }

  /// Connects to the peer and compares clocks.
  boost::asio::awaitable<ConnectionCheck> connect(PeerAddress peer);

  /// Measures both directions with `peer`, each for `time`, when the peer has come to the same turn. Gives up
  /// when it does not within some seconds. Returns what the peer sends to this node.
  boost::asio::awaitable<Transfer> measure(PeerAddress peer, int turn, std::chrono::milliseconds time);

  /// This node has no further turn: it serves peers at once.
  void end_turns();

 private:
  using Socket = boost::asio::ip::tcp::socket;

  boost::asio::awaitable<void> serve(Socket socket);
  boost::asio::awaitable<void> serve_data(Socket& socket, int turn);
  boost::asio::awaitable<Transfer> receive(PeerAddress peer, int turn, std::chrono::milliseconds time);
  boost::asio::awaitable<void> wait_until_served(int turn);
  void enter(int turn);

  boost::asio::io_context& loop_;
  int rank_;
  ProbeLimits limits_;
  std::string token_;
  std::shared_ptr<Listener> listener_;
  /// The turn that this node is in, and the last one in which its partner was served.
  int turn_ = -1;
  int served_ = -1;
  /// Cancelled when either changes.
  boost::asio::steady_timer changed_;
};

}  // namespace acc::launcher
