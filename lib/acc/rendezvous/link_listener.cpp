// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/link_listener.hpp"

#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

constexpr int kVersion = Hello{}.version;
constexpr Greetings::Limits kGreetings = {.patience = std::chrono::seconds(5), .max_guests = 64};
// A node that is not heard yet says little.
constexpr std::size_t kMaxUnheard = 16;

constexpr const char* kNoSecret =
    "the nodes of this job prove a secret, and this one has none or another: --rdzv-conf secret_file=FILE or "
    "ACC_JOB_SECRET give it";

void refuse(Link& link, const std::string& why) {
  link.send(RoundEnds{{.text = why, .exit_code = exit_code(ErrorKind::usage)}});
  link.close();
}

}  // namespace

LinkListener::LinkListener(boost::asio::io_context& loop, const std::vector<std::string>& addresses,
                           std::string run_id, JobSecret secret, std::chrono::milliseconds patience,
                           Greeted greeted)
    : run_id_(std::move(run_id)),
      secret_(std::move(secret)),
      patience_(patience),
      greeted_(std::move(greeted)),
      greetings_(std::make_shared<Greetings>(loop, kGreetings)) {
  listeners_ = listen_on(loop, addresses, 0);
  for (const auto& listener : listeners_) {
    listener->start([this](boost::asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
  }
}

LinkListener::~LinkListener() {
  for (const auto& listener : listeners_) listener->close();
  greetings_->close();
}

// The link holds itself until it has ended, and it ends when it stays silent.
void LinkListener::accepted(boost::asio::ip::tcp::socket socket) {
  const auto link = std::make_shared<Link>(std::move(socket), patience_);
  hear(link, {});
  // Whoever has linked is to see at once that this process runs.
  link->send(Beat{});
  link->start_as_stranger();
  greetings_->expect(link);
}

void LinkListener::hear(const std::shared_ptr<Link>& link, const JobSecret::Challenge& challenge) {
  link->hear(
      [this, weak = std::weak_ptr<Link>(link), alive = std::weak_ptr<bool>(alive_),
       challenge](const NodeMessage& message) {
        const auto heard = weak.lock();
        if (heard && alive.expired()) return heard->end();
        if (heard) first_message(heard, challenge, message);
      },
      [](const LinkLoss&) {});
}

// `challenge`: what the link was asked to prove.
void LinkListener::first_message(const std::shared_ptr<Link>& link, const JobSecret::Challenge& challenge,
                                 const NodeMessage& message) {
  const auto* asked = std::get_if<Challenge>(&message);
  if (asked != nullptr && !secret_)
    return refuse(*link, "this node was started without the secret of the job");
  if (asked != nullptr && challenge.of_listener.empty()) return prove(link, *asked);
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return link->end();
  if (hello->version != kVersion)
    return refuse(*link, "the nodes of the job run versions of acc that do not fit");
  if (hello->run_id != run_id_)
    return refuse(*link, "this host runs another job than '" + hello->run_id + "'");
  const bool is_proven = secret_ && !challenge.of_listener.empty() &&
                         secret_.is_proof(hello->proof, JobSecret::Side::dialer, challenge);
  if (secret_ && !is_proven) return refuse(*link, kNoSecret);
  link->greeted();
  auto follower = std::make_shared<Follower>();
  follower->link = link;
  follower->hello = *hello;
  follower->is_proven = is_proven;
  link->hear(
      [weak = std::weak_ptr<Follower>(follower)](NodeMessage next) {
        const auto heard = weak.lock();
        if (!heard) return;
        heard->said.push_back(std::move(next));
        if (heard->said.size() > kMaxUnheard) heard->link->end();
      },
      [](const LinkLoss&) {});
  greeted_(follower);
}

void LinkListener::prove(const std::shared_ptr<Link>& link, const Challenge& asked) {
  const JobSecret::Challenge challenge = {
      .run_id = run_id_, .of_dialer = asked.nonce, .of_listener = draw_nonce()};
  hear(link, challenge);
  link->send(Proof{challenge.of_listener, secret_.proof(JobSecret::Side::listener, challenge)});
}

}  // namespace acc::launcher
