// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/store/listener.hpp"

namespace acc::launcher {

/// A node that has connected to this one and introduced itself.
struct Member {
  std::shared_ptr<NodeConnection> connection = {};
  Hello hello = {};
  /// It has proven the job's secret.
  bool is_proven = false;
  /// What it has sent since then, until somebody else takes over.
  std::vector<NodeMessage> messages = {};
};

/// Where other nodes connect to this one. Who does not say first what a node of this run says, or not in
/// time, is refused: 64 wait at most, for 5 s and with 64 KiB each, and when one more comes the oldest goes.
/// With a secret, both sides prove it before.
class NodeListener {
 public:
  using OnMember = std::function<void(std::shared_ptr<Member>)>;

  /// A free port on `addresses`. Throws Error{system}.
  NodeListener(boost::asio::io_context& loop, const std::vector<std::string>& addresses, std::string run_id,
               JobSecret secret, std::chrono::milliseconds timeout, OnMember introduced);
  ~NodeListener();
  NodeListener(const NodeListener&) = delete;
  NodeListener& operator=(const NodeListener&) = delete;

  std::uint16_t port() const { return listeners_.front()->port(); }

 private:
  void accepted(boost::asio::ip::tcp::socket socket);
  void set_handlers(const std::shared_ptr<NodeConnection>& connection, const JobSecret::Challenge& challenge);
  void first_message(const std::shared_ptr<NodeConnection>& connection, const JobSecret::Challenge& challenge,
                     const NodeMessage& message);
  void prove(const std::shared_ptr<NodeConnection>& connection, const Challenge& asked);

  std::string run_id_;
  JobSecret secret_;
  std::chrono::milliseconds timeout_;
  OnMember on_member_;
  std::shared_ptr<Greetings> greetings_;
  std::vector<std::shared_ptr<Listener>> listeners_ = {};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace acc::launcher
