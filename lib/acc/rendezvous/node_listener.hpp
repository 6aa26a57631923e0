// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/store/listener.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// A node that has connected to this one and introduced itself.
struct Member {
  std::shared_ptr<NodeConnection> connection = {};
  Hello hello = {};
  /// It has proven that it knows the job's secret.
  bool is_proven = false;
  /// Messages since then, until another handler takes over.
  std::vector<NodeMessage> messages = {};
};

/// Accepts connections of other nodes. A connection that does not begin in time with the Hello of a node of
/// this run is refused: at most 64 wait, for 5 s and with 64 KiB each, and one more ends the oldest. With a
/// secret, both sides prove it before the Hello.
class NodeListener {
 public:
  using OnMember = std::function<void(std::shared_ptr<Member>)>;

  /// Listens on a free port of `addresses`. Throws Error{system}.
  NodeListener(net::io_context& loop, const std::vector<std::string>& addresses, std::string run_id,
               const JobSecret& secret, std::chrono::milliseconds timeout, OnMember on_member);
  ~NodeListener();
  NodeListener(const NodeListener&) = delete;
  NodeListener& operator=(const NodeListener&) = delete;

  std::uint16_t port() const { return listeners_.front()->port(); }

 private:
  void on_accepted(net::tcp::socket socket);
  void set_handlers(const std::shared_ptr<NodeConnection>& connection, const JobSecret::Challenge& challenge);
  void on_first_message(const std::shared_ptr<NodeConnection>& connection,
                        const JobSecret::Challenge& challenge, const NodeMessage& message);
  void prove(const std::shared_ptr<NodeConnection>& connection, const Challenge& peer_challenge);

  std::string run_id_;
  JobSecret secret_;
  std::chrono::milliseconds timeout_;
  OnMember on_member_;
  std::shared_ptr<Handshakes> handshakes_;
  std::vector<std::shared_ptr<Listener>> listeners_ = {};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace acc::launcher
