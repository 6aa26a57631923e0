// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/connecting.hpp"

#include <boost/asio/connect.hpp>
#include <utility>

namespace acc::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

Connecting::Connecting(asio::io_context& loop) : resolver_(loop), socket_(loop), timer_(loop) {}

void Connecting::start(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout,
                       Done done) {
  done_ = std::move(done);
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->finish(false, "no answer");
  });
  resolver_.async_resolve(host, std::to_string(port),
                          [self = shared_from_this()](const error_code& error, const auto& endpoints) {
                            if (!self->done_) return;
                            if (error) return self->finish(false, error.message());
                            self->connect(endpoints);
                          });
}

void Connecting::connect(const asio::ip::tcp::resolver::results_type& endpoints) {
  asio::async_connect(socket_, endpoints, [self = shared_from_this()](const error_code& error, const auto&) {
    self->refused_ = error == asio::error::connection_refused;
    if (self->done_) self->finish(!error, error.message());
  });
}

void Connecting::finish(bool connected, const std::string& why) {
  if (!done_) return;
  timer_.cancel();
  resolver_.cancel();
  const Done done = std::exchange(done_, nullptr);
  if (connected) return done(std::move(socket_), "");
  error_code ignored;
  socket_.close(ignored);
  done(std::nullopt, why);
}

void Connecting::cancel() {
  done_ = nullptr;
  timer_.cancel();
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(ConnectionLoss)> lost) {
  if (!secret) {
    connection->set_handlers([](const NodeMessage&) {}, std::move(lost));
    connection->send(hello);
    return done(true);
  }
  const JobSecret::Challenge challenge = {.run_id = hello.run_id, .dialer_nonce = draw_nonce()};
  connection->send(Challenge{challenge.dialer_nonce});
  connection->set_handlers(
      [weak = std::weak_ptr<NodeConnection>(connection), secret, hello, challenge,
       done = std::move(done)](const NodeMessage& message) {
        const auto* answer = std::get_if<Proof>(&message);
        JobSecret::Challenge both = challenge;
        if (answer != nullptr) both.listener_nonce = answer->nonce;
        const bool is_proven =
            answer != nullptr && secret.is_proof(answer->proof, JobSecret::Side::listener, both);
        if (const auto open = weak.lock(); open && is_proven) {
          Hello proven = hello;
          proven.proof = secret.proof(JobSecret::Side::dialer, both);
          open->send(proven);
        }
        done(is_proven);
      },
      std::move(lost));
}

}  // namespace acc::launcher
