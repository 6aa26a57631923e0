// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/introduction.hpp"

#include <utility>

namespace acc::launcher {

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
