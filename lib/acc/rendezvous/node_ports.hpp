// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/base/files.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/node_listener.hpp"
#include "acc/rendezvous/node_message.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/server.hpp"

namespace acc::launcher {

/// Reserves a TCP port for a worker: it is bound, so the kernel gives it to nobody else, but not listened on,
/// so a store that binds it by number with SO_REUSEADDR can listen.
class ReservedPort {
 public:
  /// `port` 0: a free one. Throws Error{system} when it is taken.
  explicit ReservedPort(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  Descriptor socket_ = {};
  std::uint16_t port_ = 0;
};

/// The ports of a node: where other nodes connect to it, and where it serves the store of the workers if it
/// becomes group rank 0.
class NodePorts {
 public:
  NodePorts(net::io_context& loop, const LaunchPlan& plan, OwnNames own_names, const JobSecret& secret,
            NodeListener::OnMember on_member);

  /// Sets the address at which others reach this node; the plan's local_addr, if given, takes precedence.
  void set_address(const std::string& address);
  const std::string& address() const { return address_; }

  /// Listens for nodes on this node's address, if that is this machine's, else on all; or on `addresses`.
  /// Throws Error{system}.
  void listen();
  void listen(const std::vector<std::string>& addresses);
  /// Sets where the workers' store would listen on a node to which no other connects.
  void listen_for_workers_alone() { addresses_ = own_addresses_to_listen_on(); }
  void close() { listener_.reset(); }
  bool is_open() const { return listener_ != nullptr; }
  std::uint16_t port() const { return listener_ ? listener_->port() : std::uint16_t{0}; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Where other nodes connect to this one.
  StoreAddress store_address() const { return {address_, port()}; }

  /// Opens the store of the next round's workers, and returns its port; 0 where it is the nodes' own store.
  std::uint16_t open_workers_store();
  /// Lets the workers of the round that begins use the store, if this node is group rank 0. `coordinator`:
  /// the address that it is seen at; empty: it is this node.
  void begin_round(const RoundBegins& message, const std::string& coordinator);

  const OwnNames& own_names() const { return own_names_; }
  /// Asks for this machine's addresses again, which may have changed since this node was started.
  void refresh_addresses();

 private:
  std::vector<std::string> own_addresses_to_listen_on() const;

  net::io_context& loop_;
  const LaunchPlan& plan_;
  OwnNames own_names_;
  const JobSecret secret_;
  NodeListener::OnMember on_member_;
  std::string address_ = {};
  std::vector<std::string> addresses_ = {};
  std::unique_ptr<NodeListener> listener_ = {};
  std::unique_ptr<StoreServer> workers_store_ = {};
  /// Where worker 0 serves the store, when no agent does.
  std::optional<ReservedPort> workers_port_ = {};
  /// Nodes of torchrun have read where the store is, and use it for all later rounds.
  bool torchrun_knows_store_ = false;
};

/// Parses `port`, of `host`, or `host:port`.
std::optional<StoreAddress> parse_address(const std::string& text, const std::string& host);

}  // namespace acc::launcher
