// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/introduction.hpp"

#include <utility>

namespace acc::launcher {

void introduce(const std::shared_ptr<Link>& link, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(LinkLoss)> lost) {
  if (!secret) {
    link->hear([](const NodeMessage&) {}, std::move(lost));
    link->send(hello);
    return done(true);
  }
  const JobSecret::Challenge challenge = {.run_id = hello.run_id, .of_dialer = draw_nonce()};
  link->send(Challenge{challenge.of_dialer});
  link->hear(
      [weak = std::weak_ptr<Link>(link), secret, hello, challenge,
       done = std::move(done)](const NodeMessage& message) {
        const auto* answer = std::get_if<Proof>(&message);
        JobSecret::Challenge both = challenge;
        if (answer != nullptr) both.of_listener = answer->nonce;
        const bool is_proven =
            answer != nullptr && secret.is_proof(answer->proof, JobSecret::Side::listener, both);
        if (const auto heard = weak.lock(); heard && is_proven) {
          Hello proven = hello;
          proven.proof = secret.proof(JobSecret::Side::dialer, both);
          heard->send(proven);
        }
        done(is_proven);
      },
      std::move(lost));
}

}  // namespace acc::launcher
