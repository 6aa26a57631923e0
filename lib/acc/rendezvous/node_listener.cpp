// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_listener.hpp"

#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

constexpr int kVersion = Hello{}.version;
constexpr Greetings::Limits kGreetings = {.timeout = std::chrono::seconds(5), .max_guests = 64};
// Of a node whose messages nobody handles yet; it sends few before it is answered.
constexpr std::size_t kMaxEarlyMessages = 16;

constexpr const char* kNoSecret =
    "the nodes of this job prove a secret, and this one has none or another: --rdzv-conf secret_file=FILE or "
    "ACC_JOB_SECRET give it";

void refuse(NodeConnection& connection, const std::string& why) {
  connection.send(RoundEnds{{.text = why, .exit_code = exit_code(ErrorKind::usage)}});
  connection.close();
}

}  // namespace

NodeListener::NodeListener(boost::asio::io_context& loop, const std::vector<std::string>& addresses,
                           std::string run_id, JobSecret secret, std::chrono::milliseconds timeout,
                           OnMember introduced)
    : run_id_(std::move(run_id)),
      secret_(std::move(secret)),
      timeout_(timeout),
      on_member_(std::move(introduced)),
      greetings_(std::make_shared<Greetings>(loop, kGreetings)) {
  listeners_ = listen_on(loop, addresses, 0);
  for (const auto& listener : listeners_) {
    listener->start([this](boost::asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
  }
}

NodeListener::~NodeListener() {
  for (const auto& listener : listeners_) listener->close();
  greetings_->close();
}

// The connection holds itself until it has ended, and it ends when it stays silent.
void NodeListener::accepted(boost::asio::ip::tcp::socket socket) {
  const auto connection = std::make_shared<NodeConnection>(std::move(socket), timeout_);
  set_handlers(connection, {});
  // Whoever has connected is to see at once that this process runs.
  connection->send(Heartbeat{});
  connection->start_as_stranger();
  greetings_->expect(connection);
}

void NodeListener::set_handlers(const std::shared_ptr<NodeConnection>& connection,
                                const JobSecret::Challenge& challenge) {
  connection->set_handlers(
      [this, weak = std::weak_ptr<NodeConnection>(connection), alive = std::weak_ptr<bool>(alive_),
       challenge](const NodeMessage& message) {
        const auto open = weak.lock();
        if (open && alive.expired()) return open->end();
        if (open) first_message(open, challenge, message);
      },
      [](const ConnectionLoss&) {});
}

// `challenge`: what the connection was asked to prove.
void NodeListener::first_message(const std::shared_ptr<NodeConnection>& connection,
                                 const JobSecret::Challenge& challenge, const NodeMessage& message) {
  const auto* asked = std::get_if<Challenge>(&message);
  if (asked != nullptr && !secret_)
    return refuse(*connection, "this node was started without the secret of the job");
  if (asked != nullptr && challenge.of_listener.empty()) return prove(connection, *asked);
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return connection->end();
  if (hello->version != kVersion)
    return refuse(*connection, "the nodes of the job run versions of acc that do not fit");
  if (hello->run_id != run_id_)
    return refuse(*connection, "this host runs another job than '" + hello->run_id + "'");
  const bool is_proven = secret_ && !challenge.of_listener.empty() &&
                         secret_.is_proof(hello->proof, JobSecret::Side::dialer, challenge);
  if (secret_ && !is_proven) return refuse(*connection, kNoSecret);
  connection->introduced();
  auto member = std::make_shared<Member>();
  member->connection = connection;
  member->hello = *hello;
  member->is_proven = is_proven;
  connection->set_handlers(
      [weak = std::weak_ptr<Member>(member)](NodeMessage next) {
        const auto open = weak.lock();
        if (!open) return;
        open->messages.push_back(std::move(next));
        if (open->messages.size() > kMaxEarlyMessages) open->connection->end();
      },
      [](const ConnectionLoss&) {});
  on_member_(member);
}

void NodeListener::prove(const std::shared_ptr<NodeConnection>& connection, const Challenge& asked) {
  const JobSecret::Challenge challenge = {
      .run_id = run_id_, .of_dialer = asked.nonce, .of_listener = draw_nonce()};
  set_handlers(connection, challenge);
  connection->send(Proof{challenge.of_listener, secret_.proof(JobSecret::Side::listener, challenge)});
}

}  // namespace acc::launcher
