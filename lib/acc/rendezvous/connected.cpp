// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/connected.hpp"

#include <fmt/format.h>

#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/rendezvous/introduction.hpp"

namespace acc::launcher {

Connected::Connected(NodeContext& node, std::shared_ptr<NodeConnection> connection,
                     std::optional<Candidates> candidates, Events events)
    : NodeState(node),
      connection_(std::move(connection)),
      candidates_(std::move(candidates)),
      events_(std::move(events)),
      redirect_(node.loop) {}

Connected::~Connected() {
  connection_->close();
}

void Connected::start() {
  connection_->set_timeout(node_.node_timeout());
  connection_->on_silence(guard_([this](const Silence& silence) {
    node_.events.on_notice(silence_text("the node that hosts the job", silence));
  }));
  if (!node_.ports.is_open()) {
    node_.ports.set_address(connection_->local_address());
    try {
      node_.ports.listen();
    } catch (const Error& error) {
      return node_.events.on_failure(error.what(), exit_code(error.kind()));
    }
  }
  node_.ports.refresh_addresses();
  introduce(
      connection_, node_.secret,
      {.run_id = node_.plan.run_id, .node = node_.introduction(), .history = node_.last_round.history()},
      guard_([this](bool is_proven) { on_introduced(is_proven); }),
      guard_([this](const ConnectionLoss& loss) { on_lost(loss); }));
}

// The coordinator's messages are trusted from here on.
void Connected::on_introduced(bool is_proven) {
  if (!is_proven) {
    return node_.events.on_failure(
        fmt::format("{} has not proven that it knows the secret of this node: give all nodes of the "
                    "job the same secret, by --rdzv-conf secret_file=FILE or {}",
                    connection_->peer_address(), kSecretVariable),
        exit_code(ErrorKind::usage));
  }
  is_introduced_ = true;
  log::debug("rendezvous: introduced to the coordinator at {}", connection_->peer_address());
  connection_->set_handlers(guard_([this](const NodeMessage& message) { on_message(message); }),
                            guard_([this](const ConnectionLoss& loss) { on_lost(loss); }));
  if (candidates_) {
    note_asked();
    redirect_pending_members_later();
  }
  if (node_.wants_round) ask_for_round();
}

void Connected::ask_for_round() {
  if (!is_introduced_) return;  // on_introduced() asks
  note_asked();
  node_.last_round.note_joined();
  send(node_.request_to_join());
}

void Connected::note_asked() {
  node_.last_round.ask(parse_address(node_.coordinator_address, "").value_or(StoreAddress{}));
}

void Connected::on_message(const NodeMessage& message) {
  if (const auto* drop = std::get_if<Dropped>(&message)) return events_.on_dropped(drop->reason);
  if (const auto* moved = std::get_if<Moved>(&message))
    return events_.on_moved({moved->addr, moved->node_port}, moved->is_another_job);
  if (std::holds_alternative<Full>(message)) return events_.on_full();
  node_.events.on_message(message);
}

void Connected::on_lost(const ConnectionLoss& loss) {
  if (!loss.peer_has_ended) send(Leave{.reason = "the coordinator was silent", .superseded = true});
  events_.on_lost(loss);
}

void Connected::on_round() {
  candidates_.reset();
  connection_->set_timeout(node_.node_timeout());
}

// A member that connects here has lost the coordinator; this node has not, or not yet.
void Connected::on_member(const std::shared_ptr<Member>& member) {
  if (keep_pending_member(node_, member)) redirect_pending_members_later();
}

void Connected::redirect_pending_members_later() {
  redirect_.expires_after(kRetryInterval);
  redirect_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (error) return;
    if (connection_->silence() >= kRetryInterval) return redirect_pending_members_later();
    redirect_pending_members(node_);
  }));
}

void Connected::leave(const Leave& leave, bool is_early, std::function<void()> on_left) {
  retire();
  if (is_early) send(leave);
  connection_->close(std::move(on_left));
}

}  // namespace acc::launcher
