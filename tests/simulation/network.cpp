// SPDX-License-Identifier: Apache-2.0
#include "simulation/network.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>

namespace simulation {
namespace {

using namespace std::chrono_literals;
namespace error = boost::asio::error;

constexpr std::size_t kSendBuffer = std::size_t{64} << 10U;
constexpr Duration kFirstPause = 200ms;
constexpr Duration kMaxPause = 120s;
constexpr Duration kFirstSynPause = 1s;
constexpr Duration kMaxSynPause = 64s;

Network* current_network = nullptr;

World& world() {
  return World::current();
}

Network& network() {
  return Network::current();
}

}  // namespace

// Side: connecting.

void Side::connect(const Endpoint& endpoint, Handler handler) {
  state_ = State::connecting;
  on_connected_ = std::move(handler);
  remote_ = endpoint;
  const auto machine = Network::machine_at(endpoint.address());
  const bool is_here = endpoint.address().is_loopback() || machine == machine_;
  local_ = network().free_endpoint(endpoint.address().is_loopback() ? endpoint.address()
                                                                    : Network::address_of(machine_));
  const std::uint64_t attempt = ++attempt_;
  world().after(network().delay(machine_, is_here ? machine_ : machine.value_or(machine_)),
                [self = shared_from_this(), endpoint, attempt] {
                  self->try_to_connect(endpoint, kFirstSynPause, attempt);
                });
}

// Arrives at the other machine, if it does.
void Side::try_to_connect(Endpoint endpoint, Duration pause, std::uint64_t attempt) {
  if (state_ != State::connecting || attempt != attempt_) return;
  Network& net = network();
  const int there =
      endpoint.address().is_loopback() ? machine_ : Network::machine_at(endpoint.address()).value_or(-1);
  const bool answers = there >= 0 && net.machine(there).has_power && net.is_open(machine_, there) &&
                       net.is_open(there, machine_) && !net.is_lost(machine_, there);
  if (!answers) {
    if (pause > kMaxSynPause) return connected(error::timed_out);
    world().after(pause, [self = shared_from_this(), endpoint, pause, attempt] {
      self->try_to_connect(endpoint, 2 * pause, attempt);
    });
    return;
  }
  error_code result = error::connection_refused;
  if (Port* port = net.port_at(there, endpoint)) {
    result = {};
    const auto peer = std::make_shared<Side>(there, nullptr);
    peer->state_ = State::established;
    peer->local_ = endpoint;
    peer->remote_ = local_;
    peer->peer_ = weak_from_this();
    peer_ = peer;
    net.sides_.push_back(peer);
    port->backlog.push_back(peer);
    if (port->on_waiting) port->on_waiting();
  }
  world().after(net.delay(there, machine_), [self = shared_from_this(), result, attempt] {
    if (self->state_ == State::connecting && attempt == self->attempt_) self->connected(result);
  });
}

void Side::connected(error_code result) {
  if (!result && failure_) result = failure_;
  state_ = result ? State::closed : State::established;
  if (auto handler = std::exchange(on_connected_, {})) finish(std::move(handler), result, 0);
}

// Side: reading.

void Side::read(char* buffer, std::size_t size, Handler handler) {
  if (state_ != State::established) return finish(std::move(handler), error::bad_descriptor, 0);
  reading_ = Reading{buffer, size, std::move(handler)};
  reader_ready();
}

void Side::reader_ready() {
  if (!reading_ || loop_ == nullptr || (incoming_.empty() && !has_ended_ && !failure_)) return;
  loop_->post([self = shared_from_this()] { self->finish_read(); });
}

// May be called more often than there is something to read.
void Side::finish_read() {
  if (!reading_ || (incoming_.empty() && !has_ended_ && !failure_)) return;
  Reading reading = *std::exchange(reading_, {});
  error_code result;
  const std::size_t bytes = read_now(reading.buffer, reading.size, result);
  reading.handler(result, bytes);
}

error_code Side::reading_error() const {
  if (state_ != State::established) return error::bad_descriptor;
  if (failure_) return failure_;
  if (has_ended_) return error::eof;
  return error::would_block;
}

std::size_t Side::read_now(char* buffer, std::size_t size, error_code& result) {
  if (incoming_.empty()) {
    result = reading_error();
    return 0;
  }
  result = {};
  const std::size_t bytes = std::min(size, incoming_.size());
  std::copy_n(incoming_.data(), bytes, buffer);
  incoming_.erase(0, bytes);
  return bytes;
}

// Side: writing.

std::size_t Side::room() const {
  return kSendBuffer - std::min(kSendBuffer, unacknowledged_);
}

std::size_t Side::write_now(std::string_view bytes, error_code& result) {
  result = {};
  if (state_ != State::established) {
    result = error::bad_descriptor;
  } else if (failure_) {
    result = error::broken_pipe;
  } else if (room() == 0 && !bytes.empty()) {
    result = error::would_block;
  }
  if (result) return 0;
  const std::string_view part = bytes.substr(0, room());
  send_pieces(part);
  return part.size();
}

void Side::write(std::string_view bytes, Handler handler) {
  writing_ = Writing{bytes, 0, std::move(handler)};
  loop_->post([self = shared_from_this()] { self->finish_write(); });
}

void Side::finish_write() {
  if (!writing_) return;
  error_code result;
  writing_->written += write_now(writing_->bytes.substr(writing_->written), result);
  if (result == error::would_block || (!result && writing_->written < writing_->bytes.size())) return;
  Writing writing = *std::exchange(writing_, {});
  writing.handler(result, writing.written);
}

void Side::wait_writable(Handler handler) {
  on_writable_ = std::move(handler);
  if (room() > 0) writer_ready();
}

void Side::writer_ready() {
  if (auto handler = std::exchange(on_writable_, {})) finish(std::move(handler), {}, 0);
  if (writing_ && loop_ != nullptr) loop_->post([self = shared_from_this()] { self->finish_write(); });
}

void Side::finish(Handler handler, error_code result, std::size_t bytes) {
  if (loop_ == nullptr) return;
  loop_->post([handler = std::move(handler), result, bytes]() mutable { handler(result, bytes); });
}

// Side: the kernel sends.

void Side::send_pieces(std::string_view bytes) {
  const Uncharged kernel;
  Random& random = world().random();
  while (!bytes.empty()) {
    const auto most = static_cast<std::int64_t>(bytes.size());
    const auto size = random.chance(80) ? most : random.between(std::int64_t{1}, most);
    send(std::string(bytes.substr(0, static_cast<std::size_t>(size))), false);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

void Side::send(std::string bytes, bool is_end) {
  const Uncharged kernel;
  const auto peer = peer_.lock();
  const int there =
      remote_.address().is_loopback() ? machine_ : Network::machine_at(remote_.address()).value_or(machine_);
  if (outgoing_.empty()) {
    unacknowledged_since_ = world().now();
    pause_ = kFirstPause;
  }
  Time due = world().now() + network().delay(machine_, there);
  if (!outgoing_.empty()) due = std::max(due, outgoing_.back().due);
  unacknowledged_ += bytes.size();
  outgoing_.push_back({std::move(bytes), is_end, false, due});
  if (!std::exchange(is_transmitting_, true)) transmit_later(due - world().now());
}

void Side::transmit_later(Duration delay) {
  world().after(std::max(delay, Duration(0)), [self = shared_from_this()] { self->transmit(); });
}

// What is due arrives, unless something is lost, and then it is sent again later. Acknowledgements can be
// lost, too.
void Side::transmit() {
  is_transmitting_ = false;
  if (outgoing_.empty() || failure_) return;
  Network& net = network();
  const int there = remote_.address().is_loopback() ? machine_ : *Network::machine_at(remote_.address());
  if (!net.machine(machine_).has_power) return;
  const bool arrives =
      net.machine(there).has_power && net.is_open(machine_, there) && !net.is_lost(machine_, there);
  const bool is_answered = arrives && net.is_open(there, machine_);
  const auto peer = peer_.lock();
  if (arrives && (!peer || peer->state_ == State::closed || peer->failure_)) {
    const bool is_only_end = outgoing_.size() == 1 && outgoing_.front().is_end;
    if (is_answered && is_only_end) return outgoing_.clear();
    if (is_answered) return fail(error::connection_reset);
  } else if (arrives) {
    for (Segment& segment : outgoing_) {
      if (segment.due > world().now()) break;
      if (!std::exchange(segment.is_delivered, true)) peer->receive(segment);
    }
  }
  acknowledge(is_answered);
}

void Side::acknowledge(bool is_answered) {
  const bool is_full = room() == 0;
  while (is_answered && !outgoing_.empty() && outgoing_.front().is_delivered) {
    unacknowledged_ -= outgoing_.front().bytes.size();
    outgoing_.pop_front();
    unacknowledged_since_ = world().now();
    pause_ = kFirstPause;
  }
  if (is_full && room() > 0) writer_ready();
  if (outgoing_.empty()) return;
  if (world().now() - unacknowledged_since_ > user_timeout_) return fail(error::timed_out);
  is_transmitting_ = true;
  const Duration until_due = outgoing_.front().due - world().now();
  if (until_due > Duration(0)) return transmit_later(until_due);
  const Duration until_timeout = unacknowledged_since_ + user_timeout_ - world().now() + 1ms;
  transmit_later(std::min(world().random().between(pause_ * 3 / 4, pause_ * 5 / 4), until_timeout));
  pause_ = std::min(2 * pause_, kMaxPause);
}

void Side::receive(const Segment& segment) {
  incoming_ += segment.bytes;
  has_ended_ = has_ended_ || segment.is_end;
  reader_ready();
}

void Side::fail(const error_code& reason) {
  if (failure_) return;
  failure_ = reason;
  outgoing_.clear();
  reader_ready();
  writer_ready();
}

// What was sent before is on its way, and is not sent again if it is lost.
void Side::reset_peer() {
  const auto segments = std::exchange(outgoing_, {});
  const auto peer = peer_.lock();
  if (!peer) return;
  Time due = world().now() + network().delay(machine_, peer->machine_);
  if (!segments.empty()) due = std::max(due, segments.back().due);
  world().at(due, [peer, segments, machine = machine_] {
    Network& net = network();
    if (peer->state_ == State::closed || !net.is_open(machine, peer->machine_)) return;
    for (const Segment& segment : segments) {
      if (segment.is_delivered) continue;
      if (net.is_lost(machine, peer->machine_)) break;
      peer->receive(segment);
    }
    if (!net.is_lost(machine, peer->machine_)) peer->fail(error::connection_reset);
  });
}

// Side: the end.

void Side::end_sending() {
  if (state_ == State::established && !failure_ && !std::exchange(ends_sending_, true)) send({}, true);
}

void Side::close() {
  if (state_ == State::closed) return;
  const State before = std::exchange(state_, State::closed);
  if (auto handler = std::exchange(on_connected_, {}))
    finish(std::move(handler), error::operation_aborted, 0);
  if (auto reading = std::exchange(reading_, {}))
    finish(std::move(reading->handler), error::operation_aborted, 0);
  if (auto writing = std::exchange(writing_, {}))
    finish(std::move(writing->handler), error::operation_aborted, 0);
  if (auto handler = std::exchange(on_writable_, {})) finish(std::move(handler), error::operation_aborted, 0);
  loop_ = nullptr;
  if (before == State::connecting) return reset_peer();
  if (before != State::established || failure_) return;
  if (!incoming_.empty()) return reset_peer();
  if (!ends_sending_) send({}, true);
  const Uncharged kernel;
  network().orphans_.push_back(shared_from_this());
}

void Side::vanish() {
  state_ = State::closed;
  outgoing_.clear();
  incoming_.clear();
}

void Side::abandon(std::vector<Handler>& handlers) {
  if (on_connected_) handlers.push_back(std::move(on_connected_));
  if (reading_) handlers.push_back(std::move(reading_->handler));
  if (writing_) handlers.push_back(std::move(writing_->handler));
  if (on_writable_) handlers.push_back(std::move(on_writable_));
  on_connected_ = {};
  reading_.reset();
  writing_.reset();
  on_writable_ = {};
}

// Network.

Network::Network(int machines)
    : machines_(static_cast<std::size_t>(machines)), links_(static_cast<std::size_t>(machines * machines)) {
  current_network = this;
}

Network::~Network() {
  current_network = nullptr;
}

Network& Network::current() {
  return *current_network;
}

Address Network::address_of(int machine) {
  return boost::asio::ip::make_address_v4(0x0a000001U + static_cast<unsigned>(machine));
}

std::optional<int> Network::machine_at(const Address& address) {
  if (!address.is_v4()) return std::nullopt;
  const auto number = static_cast<std::int64_t>(address.to_v4().to_uint()) - 0x0a000001;
  if (number < 0 || number >= network().machines()) return std::nullopt;
  return static_cast<int>(number);
}

void Network::cut(int from, int to, bool cuts) {
  link(from, to).cuts += cuts ? 1 : -1;
}

bool Network::is_open(int from, int to) const {
  return from == to || link(from, to).cuts == 0;
}

bool Network::is_whole() const {
  return loss_ == 0 && std::ranges::all_of(links_, [](const Link& link) { return link.cuts == 0; }) &&
         std::ranges::all_of(machines_, &Machine::has_power);
}

void Network::set_latency(int from, int to, Duration latency) {
  link(from, to).latency = latency;
}

Duration Network::delay(int from, int to) {
  Random& random = world().random();
  if (from == to) return random.between(5us, 50us);
  const Duration latency = link(from, to).latency;
  return random.between(latency, latency * (random.chance(5) ? 10 : 2));
}

bool Network::is_lost(int from, int to) {
  return loss_ > 0 && from != to && world().random().chance(loss_);
}

void Network::cut_power(int number) {
  machine(number).has_power = false;
  for (const auto& weak : sides_) {
    if (const auto side = weak.lock(); side && side->machine_ == number) side->vanish();
  }
  std::erase_if(ports_, [number](const auto& port) { return port->loop.machine == number; });
}

void Network::end(io_context& loop) {
  const auto ports = ports_;
  for (const auto& port : ports) {
    if (&port->loop == &loop) close(port);
  }
  const auto sides = sides_;
  for (const auto& weak : sides) {
    if (const auto side = weak.lock(); side && side->loop_ == &loop) side->close();
  }
}

void Network::abandon(io_context& loop) {
  std::vector<Side::Handler> handlers;
  for (const auto& weak : sides_) {
    const auto side = weak.lock();
    if (!side || side->loop_ != &loop) continue;
    side->abandon(handlers);
    side->loop_ = nullptr;
  }
  for (const auto& port : ports_) {
    if (&port->loop == &loop) port->on_waiting = {};
  }
}

std::shared_ptr<Port> Network::listen(io_context& loop, const Endpoint& endpoint, error_code& result) {
  Endpoint chosen = endpoint;
  if (chosen.port() == 0) chosen.port(next_port_++);
  result = {};
  for (const auto& port : ports_) {
    if (port->loop.machine == loop.machine && port->endpoint.port() == chosen.port())
      result = error::address_in_use;
  }
  if (result) return nullptr;
  const Uncharged kernel;
  ports_.push_back(std::make_shared<Port>(loop, chosen));
  return ports_.back();
}

void Network::close(const std::shared_ptr<Port>& port) {
  std::erase(ports_, port);
  port->on_waiting = {};
  for (const auto& side : std::exchange(port->backlog, {})) {
    side->reset_peer();
    side->vanish();
  }
}

Port* Network::port_at(int machine, const Endpoint& endpoint) {
  for (const auto& port : ports_) {
    const bool listens =
        port->endpoint.address().is_unspecified() || port->endpoint.address() == endpoint.address();
    if (port->loop.machine == machine && port->endpoint.port() == endpoint.port() && listens)
      return port.get();
  }
  return nullptr;
}

std::shared_ptr<Side> Network::new_side(io_context& loop) {
  const Uncharged kernel;
  if (sides_.size() % 64 == 63) forget_closed_sides();
  auto side = std::make_shared<Side>(loop.machine, &loop);
  sides_.push_back(side);
  return side;
}

void Network::forget_closed_sides() {
  std::erase_if(sides_, [](const auto& side) { return side.expired(); });
  std::erase_if(orphans_, [](const auto& side) { return side->outgoing_.empty(); });
}

Endpoint Network::free_endpoint(const Address& address) {
  return {address, next_port_++};
}

std::size_t Network::unread() const {
  std::size_t bytes = 0;
  for (const auto& weak : sides_) {
    if (const auto side = weak.lock()) bytes += side->incoming_.size() + side->unacknowledged_;
  }
  return bytes;
}

std::size_t Network::held() const {
  return static_cast<std::size_t>(std::ranges::count_if(sides_, [](const auto& weak) {
    const auto side = weak.lock();
    return side && side->loop_ != nullptr && side->state_ != Side::State::closed;
  }));
}

}  // namespace simulation
