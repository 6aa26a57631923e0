// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_listener.hpp"

#include <utility>

#include "acc/base/error.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

constexpr Handshakes::Limits kHandshakes = {.timeout = std::chrono::seconds(5), .max_pending = 64};
// Limit for a node whose messages are not handled yet; it sends few before it is answered.
constexpr std::size_t kMaxEarlyMessages = 16;

constexpr const char* kNoSecret =
    "the nodes of this job share a secret, and this node has none or another: set it with --rdzv-conf "
    "secret_file=FILE or ACC_JOB_SECRET";

void refuse_node(NodeConnection& connection, const std::string& reason) {
  connection.send(RoundEnds{{.text = reason, .exit_code = exit_code(ErrorKind::usage)}});
  connection.close();
}

}  // namespace

NodeListener::NodeListener(net::io_context& loop, const std::vector<std::string>& addresses,
                           std::string run_id, const JobSecret& secret, std::chrono::milliseconds timeout,
                           OnMember on_member)
    : run_id_(std::move(run_id)),
      secret_(secret),
      timeout_(timeout),
      on_member_(std::move(on_member)),
      handshakes_(std::make_shared<Handshakes>(loop, kHandshakes)) {
  listeners_ = listen_on(loop, addresses, 0);
  for (const auto& listener : listeners_) {
    listener->start([this](net::tcp::socket socket) { on_accepted(std::move(socket)); });
  }
}

NodeListener::~NodeListener() {
  for (const auto& listener : listeners_) listener->close();
  handshakes_->close();
}

// The connection keeps itself alive until it ends, and it ends when it stays silent.
void NodeListener::on_accepted(net::tcp::socket socket) {
  const auto connection = std::make_shared<NodeConnection>(std::move(socket), timeout_);
  // Reset already: of what arrived before nobody knows where it came from.
  if (connection->peer_address().empty()) return connection->end();
  set_handlers(connection, {});
  // Shows the other side at once that this process runs.
  connection->send(Heartbeat{});
  connection->start_as_stranger();
  handshakes_->expect(connection);
}

void NodeListener::set_handlers(const std::shared_ptr<NodeConnection>& connection,
                                const JobSecret::Challenge& challenge) {
  connection->set_handlers(
      [this, weak = std::weak_ptr<NodeConnection>(connection), alive = std::weak_ptr<bool>(alive_),
       challenge](const NodeMessage& message) {
        const auto open = weak.lock();
        if (open && alive.expired()) return open->end();
        if (open) on_first_message(open, challenge, message);
      },
      [](const ConnectionLoss&) {});
}

// `challenge`: what the connection was asked to prove.
void NodeListener::on_first_message(const std::shared_ptr<NodeConnection>& connection,
                                    const JobSecret::Challenge& challenge, const NodeMessage& message) {
  const auto* peer_challenge = std::get_if<Challenge>(&message);
  if (peer_challenge != nullptr && !secret_)
    return refuse_node(*connection, "this node was started without the secret of the job");
  if (peer_challenge != nullptr && challenge.listener_nonce.empty())
    return prove(connection, *peer_challenge);
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return connection->end();
  if (hello->version != kNodeProtocol)
    return refuse_node(*connection, "the nodes of the job run incompatible versions of acc");
  if (hello->run_id != run_id_)
    return refuse_node(*connection, "this host runs another job, not '" + hello->run_id + "'");
  const bool is_proven = secret_ && !challenge.listener_nonce.empty() &&
                         secret_.is_proof(hello->proof, JobSecret::Side::dialer, challenge);
  if (secret_ && !is_proven) return refuse_node(*connection, kNoSecret);
  connection->on_introduced();
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

void NodeListener::prove(const std::shared_ptr<NodeConnection>& connection, const Challenge& peer_challenge) {
  const JobSecret::Challenge challenge = {
      .run_id = run_id_, .dialer_nonce = peer_challenge.nonce, .listener_nonce = draw_nonce()};
  set_handlers(connection, challenge);
  connection->send(Proof{challenge.listener_nonce, secret_.proof(JobSecret::Side::listener, challenge)});
}

}  // namespace acc::launcher
