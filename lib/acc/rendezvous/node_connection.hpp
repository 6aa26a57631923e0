// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/node_message.hpp"
#include "acc/store/handshakes.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// The other side of a connection is silent, or is heard again.
struct Silence {
  std::chrono::milliseconds duration = {};
  /// After which the connection ends.
  std::chrono::milliseconds timeout = {};
  /// It has been heard again.
  bool is_over = false;
};

/// When silence is reported, counted from when the other side was last heard.
struct SilenceReports {
  std::chrono::milliseconds first = std::chrono::seconds(3);
  std::chrono::milliseconds interval = std::chrono::seconds(10);
};

/// The report for the user.
std::string silence_text(const std::string& node, const Silence& silence);

/// How a connection ended.
struct ConnectionLoss {
  std::string reason = {};
  /// The other side's machine has closed it: that process has ended. Otherwise it is silent, and may be alive
  /// behind a network partition.
  bool peer_has_ended = false;
};

/// A connection between two nodes of `acc`: messages both ways, and heartbeats in between. Silence for longer
/// than `timeout` ends it; until then TCP may repair it. The buffer of a message grows as its bytes arrive.
class NodeConnection : public PendingConnection, public std::enable_shared_from_this<NodeConnection> {
  using Clock = RunningClock;

 public:
  /// Longest message of a node of the job, and of others.
  static constexpr std::size_t kMaxMessage = std::size_t{4} << 20U;
  static constexpr std::size_t kMaxStrangersMessage = std::size_t{64} << 10U;

  NodeConnection(net::tcp::socket socket, std::chrono::milliseconds timeout, SilenceReports reports = {});

  /// From now on calls `on_message` for each message and `on_lost` for the end, once and last; a side that is
  /// only silent can still be sent a last message from there. Calls neither after close(). Must be called
  /// before start(); may be called again.
  void set_handlers(std::function<void(NodeMessage)> on_message, std::function<void(ConnectionLoss)> on_lost);
  void start();
  /// Starts a connection that the other side made: reads at once what has arrived, and accepts only short
  /// messages until trust().
  void start_as_stranger();

  /// The other side has introduced itself.
  void on_introduced() { is_pending_ = false; }
  /// The other side takes part in a round, so its messages may be long.
  void trust() { max_message_ = kMaxMessage; }

  /// Calls `report` when the other side falls silent, repeatedly while it stays silent, and when it is heard
  /// again.
  void on_silence(std::function<void(Silence)> report) { on_silence_ = std::move(report); }
  /// Calls `callback` once, when the next bytes arrive.
  void on_next_bytes(std::function<void()> callback) { on_next_bytes_ = std::move(callback); }
  /// How long the other side may be silent from now on.
  void set_timeout(std::chrono::milliseconds timeout);

  /// Messages are sent in order; none once the connection has ended. A RankReport is dropped while much is
  /// unsent.
  void send(const NodeMessage& message);

  /// Sends what is queued, as far as the other side takes it, and ends; then calls `on_ended`, if given.
  void close(std::function<void()> on_ended = {});

  /// Sends a last message to a side that may be sending, too, and ends when that one does, or at the timeout:
  /// what arrived at a closed socket would reset the connection, and the message could be lost.
  void dismiss(const NodeMessage& message);

  bool is_open() const { return open_ && !lingers_; }
  /// How often each side sends something.
  std::chrono::milliseconds heartbeat() const { return heartbeat_; }
  /// How long the other side has been silent.
  Clock::duration silence() const { return Clock::now() - last_bytes_; }
  bool is_pending() const override { return open_ && is_pending_; }
  bool has_unread() override;
  void end() override;
  /// Numeric addresses; that of the other side is what it was at the beginning, empty if there was none any
  /// more.
  std::string local_address() const;
  const std::string& peer_address() const { return peer_address_; }
  /// False if the other side is another user's process on this machine, or was one that has closed already.
  bool is_own_users() const;

 private:
  void read();
  void on_received(std::size_t bytes);
  void refuse_message();
  void write();
  void wait();
  void note_awake();
  void check_silence();
  void report_silence(Clock::time_point now);
  void count_silence_from(Clock::time_point now);
  void on_bytes();
  void set_user_timeout(std::chrono::milliseconds timeout);
  void fail(const ConnectionLoss& loss);
  void all_is_sent();

  net::tcp::socket socket_;
  const std::string peer_address_;
  RunningTimer timer_;
  std::chrono::milliseconds timeout_ = {};
  SilenceReports reports_;
  std::chrono::milliseconds heartbeat_;
  Clock::time_point report_due_ = {};
  bool silence_reported_ = false;
  std::function<void(Silence)> on_silence_ = {};
  std::function<void()> on_next_bytes_ = {};
  std::function<void(NodeMessage)> on_message_ = {};
  std::function<void(ConnectionLoss)> on_lost_ = {};
  std::function<void()> on_ended_ = {};
  std::array<char, 4096> buffer_ = {};
  std::string received_ = {};
  std::size_t max_message_ = kMaxMessage;
  bool is_pending_ = false;
  /// The other side has made the connection: it is a node, and this one may lead it.
  bool is_accepted_ = false;
  std::string sending_ = {};
  std::string queued_ = {};
  Clock::time_point last_bytes_ = {};
  /// When this process ran, as far as is known; and since when it does, if it was stopped for longer than the
  /// other side waits, and has heard nothing new since.
  net::steady_clock::time_point last_awake_ = net::steady_clock::now();
  std::optional<net::steady_clock::time_point> woken_ = {};
  bool open_ = true;
  bool writing_ = false;
  bool closing_ = false;
  /// The other side sends no more.
  bool all_is_read_ = false;
  /// The other side may be alive: it closes first, unless it stays silent.
  bool lingers_ = false;
  /// When it ends though the other side has not.
  std::optional<Clock::time_point> end_due_ = {};
};

}  // namespace acc::launcher
