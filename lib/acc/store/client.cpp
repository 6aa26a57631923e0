// SPDX-License-Identifier: Apache-2.0
#include "acc/store/client.hpp"

#include <algorithm>
#include <array>
#include <boost/system/error_code.hpp>
#include <deque>
#include <string_view>

#include "acc/store/network.hpp"
#include "acc/store/replies.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;
using net::tcp;
using std::chrono::milliseconds;

using Answered = std::function<void(StoreOutcome, Reply)>;

struct Operation {
  Request request = {};
  Answered handler = {};
  std::optional<milliseconds> timeout = {};  // of a wait
};

}  // namespace

struct StoreClient::Impl : std::enable_shared_from_this<Impl> {
  Impl(net::io_context& the_loop, milliseconds max)
      : loop(the_loop), request_timeout(max), socket(loop), timer(loop) {}

  enum class State { connecting, open, lost, ended };

  void adopt(tcp::socket connection);
  void disconnect(State now);
  void on_lost();

  void ask(Request request, Answered handler, std::optional<milliseconds> timeout = {});
  /// Sends the second half of an operation, before all queued operations.
  void ask_next(Request request, Answered handler);
  void next();
  void finish(StoreOutcome outcome, Reply reply);
  void send(const Request& request);
  void flush();
  void read();
  void on_received(std::string_view bytes);
  void on_reply(Reply reply);
  void start_timeout(milliseconds time);
  void on_timeout();

  net::io_context& loop;
  milliseconds request_timeout;
  StoreAddress address = {};
  std::shared_ptr<Dialer> dialer = {};
  State state = State::connecting;
  tcp::socket socket;
  RunningTimer timer;
  std::uint64_t timeout_id = 0;  // ignores expired timers of earlier operations
  ReplyParser parser = {};
  std::deque<Operation> waiting = {};
  std::optional<Operation> current = {};  // sent, not answered
  bool canceling = false;                 // a cancel_wait for it was sent
  bool released = false;                  // ... and crossed the reply of the wait
  bool writing = false;
  std::string unsent = {};
  std::string being_sent = {};
  std::array<char, 16384> buffer = {};
  std::function<void()> closed = {};
};

void StoreClient::Impl::adopt(tcp::socket connection) {
  socket = std::move(connection);
  state = State::open;
  read();
  next();
}

void StoreClient::Impl::disconnect(State now) {
  state = now;
  if (dialer) dialer->cancel();
  timer.cancel();
  error_code ignored;
  socket.close(ignored);
}

// Calls all pending handlers. Any of them may destroy the client.
void StoreClient::Impl::on_lost() {
  if (state != State::open && state != State::connecting) return;
  const auto self = shared_from_this();
  disconnect(State::lost);
  std::deque<Operation> operations = std::exchange(waiting, {});
  if (current) operations.push_front(*std::exchange(current, {}));
  for (const Operation& operation : operations) {
    if (operation.handler && state == State::lost) operation.handler(StoreOutcome::closed, {});
  }
  const auto handler = std::exchange(closed, {});
  if (handler && state == State::lost) handler();
}

void StoreClient::Impl::ask(Request request, Answered handler, std::optional<milliseconds> timeout) {
  waiting.push_back({std::move(request), std::move(handler), timeout});
  net::post(loop, [self = shared_from_this()] { self->next(); });
}

void StoreClient::Impl::ask_next(Request request, Answered handler) {
  waiting.push_front({std::move(request), std::move(handler), {}});
}

void StoreClient::Impl::next() {
  const auto self = shared_from_this();
  while (state == State::open && !current && !waiting.empty()) {
    current = std::move(waiting.front());
    waiting.pop_front();
    send(current->request);
    if (has_reply(current->request.op)) {
      parser.expect(current->request);
      start_timeout(current->timeout.value_or(request_timeout));
    } else {
      finish(StoreOutcome::done, {});
    }
  }
  while (state == State::lost && !waiting.empty()) {
    const Operation operation = std::move(waiting.front());
    waiting.pop_front();
    if (operation.handler) operation.handler(StoreOutcome::closed, {});
  }
}

void StoreClient::Impl::finish(StoreOutcome outcome, Reply reply) {
  const Operation operation = *std::exchange(current, {});
  ++timeout_id;
  timer.cancel();
  canceling = false;
  released = false;
  if (operation.handler) operation.handler(outcome, std::move(reply));
}

void StoreClient::Impl::send(const Request& request) {
  unsent += encode(request);
  if (!writing) flush();
}

void StoreClient::Impl::flush() {
  writing = true;
  being_sent = std::exchange(unsent, {});
  net::async_write(socket, net::buffer(being_sent),
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     self->writing = false;
                     if (self->state != State::open) return;
                     if (error) return self->on_lost();
                     if (!self->unsent.empty()) self->flush();
                   });
}

void StoreClient::Impl::read() {
  socket.async_read_some(net::buffer(buffer),
                         [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                           if (self->state != State::open) return;
                           if (error) return self->on_lost();
                           self->on_received({self->buffer.data(), bytes});
                           if (self->state == State::open) self->read();
                         });
}

void StoreClient::Impl::on_received(std::string_view bytes) {
  while (!bytes.empty() && state == State::open) {
    if (!current) return on_lost();  // unrequested bytes
    auto reply = parser.next(bytes);
    if (parser.broken()) return on_lost();
    if (!reply) return;
    on_reply(std::move(*reply));
  }
}

// A store answers a cancel_wait with one byte; the reply of the wait may have been sent just before it.
void StoreClient::Impl::on_reply(Reply reply) {
  if (canceling && !released && reply.number == kStopWaiting) {
    released = true;
    parser.expect(current->request);
    return;
  }
  finish(canceling && !released ? StoreOutcome::timed_out : StoreOutcome::done, std::move(reply));
  next();
}

void StoreClient::Impl::start_timeout(milliseconds time) {
  timer.expires_after(time);
  timer.async_wait([self = shared_from_this(), number = ++timeout_id](const error_code& error) {
    if (!error && number == self->timeout_id && self->state == State::open) self->on_timeout();
  });
}

void StoreClient::Impl::on_timeout() {
  if (canceling || !current->timeout) return on_lost();
  canceling = true;
  send({.op = Op::cancel_wait});
  start_timeout(request_timeout);
}

StoreClient::StoreClient(net::io_context& loop, milliseconds timeout)
    : impl_(std::make_shared<Impl>(loop, timeout)) {}

StoreClient::~StoreClient() {
  close();
}

void StoreClient::connect(const StoreAddress& address, RunningClock::time_point deadline,
                          std::function<void(const std::string&)> failed,
                          std::function<void(std::optional<Error>)> connected) {
  impl_->address = address;
  impl_->dialer = std::make_shared<Dialer>(impl_->loop);
  impl_->dialer->start(
      address, deadline, std::move(failed),
      [impl = impl_, address, connected = std::move(connected)](auto connection, const auto& reason) {
        if (connection) {
          impl->adopt(std::move(*connection));
          return connected(std::nullopt);
        }
        impl->closed = {};
        impl->on_lost();
        if (impl->state != Impl::State::lost) return;
        connected(
            Error({.kind = ErrorKind::rendezvous,
                   .what = "no store answers: " + reason,
                   .where = to_string(address),
                   .hint = "check that the node that hosts it runs, and that its port can be reached"}));
      });
}

const StoreAddress& StoreClient::address() const {
  return impl_->address;
}

void StoreClient::on_closed(std::function<void()> closed) {
  impl_->closed = std::move(closed);
}

Problem StoreClient::loss() const {
  return {.what = "the connection to the store of the rendezvous is lost",
          .where = to_string(impl_->address),
          .hint = "look at the node that hosts it"};
}

std::unique_ptr<Store> StoreClient::open_again(RunningClock::time_point deadline,
                                               std::function<void(std::optional<Error>)> opened) const {
  auto store = std::make_unique<StoreClient>(impl_->loop, impl_->request_timeout);
  store->connect(impl_->address, deadline, {}, std::move(opened));
  return store;
}

void StoreClient::close() {
  impl_->disconnect(Impl::State::ended);
  impl_->waiting.clear();
  impl_->current.reset();
  impl_->closed = {};
}

bool StoreClient::connected() const {
  return impl_->state == Impl::State::open;
}

namespace {

Answered without_reply(StoreClient::Done handler) {
  if (!handler) return {};
  return [handler = std::move(handler)](StoreOutcome outcome, const Reply&) { handler(outcome); };
}

Answered with_number(StoreClient::Handler<std::int64_t> handler) {
  return [handler = std::move(handler)](StoreOutcome outcome, const Reply& reply) {
    handler(outcome, reply.number);
  };
}

}  // namespace

void StoreClient::set(std::string key, std::string value, Done handler) {
  impl_->ask({.op = Op::set, .keys = {std::move(key)}, .values = {std::move(value)}},
             without_reply(std::move(handler)));
}

void StoreClient::multi_set(Pairs pairs, Done handler) {
  Request request = {.op = Op::multi_set};
  for (auto& [key, value] : pairs) {
    request.keys.push_back(std::move(key));
    request.values.push_back(std::move(value));
  }
  impl_->ask(std::move(request), without_reply(std::move(handler)));
}

// Checks first: for a missing key a legacy server closes the connection, and a libuv server replies "".
void StoreClient::multi_get(std::vector<std::string> keys, Handler<Values> handler) {
  Request check = {.op = Op::check, .keys = keys};
  impl_->ask(std::move(check), [impl = impl_.get(), keys = std::move(keys), handler = std::move(handler)](
                                   StoreOutcome outcome, const Reply& reply) mutable {
    if (outcome != StoreOutcome::done || reply.number != kReady) return handler(outcome, std::nullopt);
    impl->ask_next({.op = Op::multi_get, .keys = std::move(keys)},
                   [handler = std::move(handler)](StoreOutcome got, Reply values) {
                     if (got != StoreOutcome::done) return handler(got, std::nullopt);
                     handler(got, std::move(values.texts));
                   });
  });
}

void StoreClient::check(std::vector<std::string> keys, Handler<bool> handler) {
  impl_->ask({.op = Op::check, .keys = std::move(keys)},
             [handler = std::move(handler)](StoreOutcome outcome, const Reply& reply) {
               handler(outcome, outcome == StoreOutcome::done && reply.number == kReady);
             });
}

void StoreClient::add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) {
  impl_->ask({.op = Op::add, .keys = {std::move(key)}, .number = delta}, with_number(std::move(handler)));
}

void StoreClient::compare_set(std::string key, std::string expected, std::string desired,
                              Handler<std::string> handler) {
  impl_->ask(
      {.op = Op::compare_set, .keys = {std::move(key)}, .values = {std::move(expected), std::move(desired)}},
      [handler = std::move(handler)](StoreOutcome outcome, Reply reply) {
        handler(outcome, reply.texts.empty() ? std::string() : std::move(reply.texts.front()));
      });
}

void StoreClient::delete_key(std::string key, Handler<bool> handler) {
  impl_->ask({.op = Op::delete_key, .keys = {std::move(key)}},
             [handler = std::move(handler)](StoreOutcome outcome, const Reply& reply) {
               handler(outcome, reply.number > 0);
             });
}

// torch's server never ends a wait that began while one of its keys was a queue (2.11, 2.15): check once more
// before timing out.
void StoreClient::wait(std::vector<std::string> keys, milliseconds timeout, Done handler) {
  Request wait = {.op = Op::wait, .keys = keys};
  impl_->ask(
      std::move(wait),
      [impl = impl_.get(), keys = std::move(keys), handler = std::move(handler)](StoreOutcome outcome,
                                                                                 const Reply&) mutable {
        if (outcome != StoreOutcome::timed_out) return handler(outcome);
        impl->ask_next({.op = Op::check, .keys = std::move(keys)},
                       [handler = std::move(handler)](StoreOutcome checked, const Reply& reply) {
                         const bool late = checked == StoreOutcome::done && reply.number == kNotReady;
                         handler(late ? StoreOutcome::timed_out : checked);
                       });
      },
      timeout);
}

}  // namespace acc::launcher
