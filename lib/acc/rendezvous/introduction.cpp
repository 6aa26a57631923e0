// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/introduction.hpp"

#include <utility>

namespace acc::launcher {

void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> on_done, std::function<void(ConnectionLoss)> on_lost) {
  if (!secret) {
    connection->set_handlers([](const NodeMessage&) {}, std::move(on_lost));
    connection->send(hello);
    return on_done(true);
  }
  const JobSecret::Challenge challenge = {.run_id = hello.run_id, .dialer_nonce = draw_nonce()};
  connection->send(Challenge{challenge.dialer_nonce});
  connection->set_handlers(
      [weak = std::weak_ptr<NodeConnection>(connection), secret, hello, challenge,
       on_done = std::move(on_done)](const NodeMessage& message) {
        const auto* answer = std::get_if<Proof>(&message);
        JobSecret::Challenge full_challenge = challenge;
        if (answer != nullptr) full_challenge.listener_nonce = answer->nonce;
        const bool is_proven =
            answer != nullptr && secret.is_proof(answer->proof, JobSecret::Side::listener, full_challenge);
        if (const auto peer = weak.lock(); peer && is_proven) {
          Hello proven_hello = hello;
          proven_hello.proof = secret.proof(JobSecret::Side::dialer, full_challenge);
          peer->send(proven_hello);
        }
        on_done(is_proven);
      },
      std::move(on_lost));
}

}  // namespace acc::launcher
