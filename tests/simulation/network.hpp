// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "simulation/world.hpp"

namespace simulation {

using acc::net::io_context;
using boost::system::error_code;
using Endpoint = boost::asio::ip::tcp::endpoint;
using Address = boost::asio::ip::address;

/// One end of a TCP connection, as the kernel of its machine has it. Bytes arrive in order, in pieces, late.
/// What is lost is sent again with growing pauses, until it is acknowledged or the user timeout is over.
class Side : public std::enable_shared_from_this<Side> {
 public:
  using Handler = Callback<void(error_code, std::size_t)>;

  Side(int machine, io_context* loop) : machine_(machine), loop_(loop) {}

  // Calls of the process.
  void connect(const Endpoint& endpoint, Handler handler);
  void read(char* buffer, std::size_t size, Handler handler);
  std::size_t read_now(char* buffer, std::size_t size, error_code& error);
  std::size_t available() const { return incoming_.size(); }
  void write(std::string_view bytes, Handler handler);
  std::size_t write_now(std::string_view bytes, error_code& error);
  void wait_writable(Handler handler);
  void set_user_timeout(Duration timeout) { user_timeout_ = timeout; }
  /// The process sends no more.
  void end_sending();
  /// The process closes it, or has ended: the other side hears of it.
  void close();
  /// The machine has lost its power: nobody hears of anything.
  void vanish();
  /// A process accepts it.
  void accept(io_context& loop) { loop_ = &loop; }
  /// Handlers are not called but destroyed with `handlers`.
  void abandon(std::vector<Handler>& handlers);

  const Endpoint& local() const { return local_; }
  const Endpoint& remote() const { return remote_; }
  bool is_connected() const { return state_ == State::established && !failure_; }
  int machine() const { return machine_; }
  io_context* loop() const { return loop_; }

 private:
  friend class Network;
  enum class State { fresh, connecting, established, closed };
  struct Segment {
    std::string bytes = {};
    bool is_end = false;
    bool is_delivered = false;
    Time due = {};
  };

  void try_to_connect(Endpoint endpoint, Duration pause, std::uint64_t attempt);
  void connected(error_code error);
  void send(std::string bytes, bool is_end);
  void send_pieces(std::string_view bytes);
  void transmit();
  void transmit_later(Duration delay);
  void acknowledge(bool is_acknowledged);
  void receive(const Segment& segment);
  void fail(const error_code& error);
  void reset_peer();
  void reader_ready();
  void writer_ready();
  void finish_read();
  void finish_write();
  void finish(Handler handler, error_code error, std::size_t bytes);
  error_code reading_error() const;
  std::size_t room() const;

  int machine_;
  io_context* loop_;
  State state_ = State::fresh;
  std::weak_ptr<Side> peer_ = {};
  Endpoint local_ = {};
  Endpoint remote_ = {};
  std::deque<Segment> outgoing_ = {};
  std::size_t unacknowledged_ = 0;
  Time unacknowledged_since_ = {};
  Duration pause_ = {};
  bool is_transmitting_ = false;
  Duration user_timeout_ = std::chrono::minutes(15);
  std::string incoming_ = {};
  bool has_ended_ = false;     // the other side sends no more
  bool ends_sending_ = false;  // nor does this one
  error_code failure_ = {};
  std::uint64_t attempt_ = 0;
  Handler on_connected_ = {};
  struct Reading {
    char* buffer = nullptr;
    std::size_t size = 0;
    Handler handler = {};
  };
  std::optional<Reading> reading_ = {};
  struct Writing {
    std::string_view bytes = {};
    std::size_t written = 0;
    Handler handler = {};
  };
  std::optional<Writing> writing_ = {};
  Handler on_writable_ = {};
};

/// A port on which a process listens.
class Port {
 public:
  Port(io_context& the_loop, Endpoint the_endpoint) : loop(the_loop), endpoint(std::move(the_endpoint)) {}

  /// Connections that the kernel has made and the process has not accepted.
  std::deque<std::shared_ptr<Side>> backlog = {};
  Callback<void()> on_waiting = {};
  io_context& loop;
  Endpoint endpoint;
};

struct Machine {
  bool has_power = true;
  Duration clock_skew = {};
};

/// The network between the machines: which reach which, and how fast.
class Network {
 public:
  explicit Network(int machines);
  ~Network();
  static Network& current();

  int machines() const { return static_cast<int>(machines_.size()); }
  Machine& machine(int number) { return machines_.at(static_cast<std::size_t>(number)); }
  /// `10.0.0.1` is that of machine 0.
  static Address address_of(int machine);
  /// Absent: no machine has it.
  static std::optional<int> machine_at(const Address& address);

  /// Nothing gets from one machine to the other; calls count.
  void cut(int from, int to, bool cuts);
  bool is_open(int from, int to) const;
  /// Nothing is cut or lost, and all machines have power.
  bool is_whole() const;
  void set_latency(int from, int to, Duration latency);
  /// A time that something takes from one machine to the other.
  Duration delay(int from, int to);
  /// Of 100 transmissions between machines, so many are lost.
  void set_loss(int percent) { loss_ = percent; }
  bool is_lost(int from, int to);

  /// Power is lost: all that its processes and connections were is gone.
  void cut_power(int machine);
  /// The process of `loop` has ended, and its kernel closes what it had.
  void end(io_context& loop);
  /// Destroys the handlers of a process.
  void abandon(io_context& loop);

  std::shared_ptr<Port> listen(io_context& loop, const Endpoint& endpoint, error_code& error);
  void close(const std::shared_ptr<Port>& port);
  std::shared_ptr<Side> new_side(io_context& loop);
  Endpoint free_endpoint(const Address& address);

  /// Of all connections, bytes that nobody has read.
  std::size_t unread() const;
  /// Sides of connections that processes hold.
  std::size_t held() const;
  /// Ports on which processes listen.
  std::size_t listening() const { return ports_.size(); }

 private:
  friend class Side;
  struct Link {
    int cuts = 0;
    Duration latency = {};
  };

  Link& link(int from, int to) { return links_.at(static_cast<std::size_t>(from * machines() + to)); }
  const Link& link(int from, int to) const {
    return links_.at(static_cast<std::size_t>(from * machines() + to));
  }
  Port* port_at(int machine, const Endpoint& endpoint);
  void forget_closed_sides();

  std::vector<Machine> machines_;
  std::vector<Link> links_;
  std::vector<std::shared_ptr<Port>> ports_ = {};
  std::vector<std::weak_ptr<Side>> sides_ = {};
  // Closed by their processes, while their kernels still send.
  std::vector<std::shared_ptr<Side>> orphans_ = {};
  std::uint16_t next_port_ = 20000;
  int loss_ = 0;
};

}  // namespace simulation
