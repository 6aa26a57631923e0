// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/node_state.hpp"
#include "acc/store/client.hpp"
#include "acc/store/connecting.hpp"
#include "acc/store/network.hpp"
#include "acc/store/resolver.hpp"

namespace acc::launcher {

/// The node looks for the job: it hosts it if the endpoint is this machine, else asks the endpoint's store or
/// etcd's key which node does; at another launcher's store, or in a file, it meets the others by itself.
/// Leads to Connected or Hosting.
class Searching : public NodeState {
 public:
  struct Events {
    /// The coordinator at `address` has accepted a connection.
    std::function<void(net::tcp::socket, const StoreAddress& address)> on_connected = {};
    std::function<void(std::unique_ptr<Host>, const std::string& reason)> on_hosting = {};
  };
  /// `endpoint`: a node that was turned away does not try to host, since the endpoint's store exists.
  enum class Start { beginning, endpoint };

  Searching(NodeContext& node, Start start, Events events);
  ~Searching() override;

  const char* name() const override { return "searching"; }
  void start() override;

 private:
  using Addresses = std::vector<std::string>;

  void resolve_endpoint(std::function<void(const HostLookup&)> on_done);
  void note_wrong_endpoint(const HostLookup& endpoint);
  void on_resolved(const Addresses& addresses);
  void note_namesake(const Addresses& addresses);
  bool may_hold_connections();
  bool try_to_host(const Addresses& addresses);
  void ask_endpoint();
  void ask_endpoint_later();
  void limit_search();
  void on_coordinator_told(const std::optional<std::string>& text);
  void connect(const StoreAddress& address);
  void meet_at_other_launchers_store();
  void meet_in_file();
  void choose_address(const Addresses& addresses, const std::function<void()>& on_chosen);
  void meet_at(std::unique_ptr<Store> store, const std::string& reason);
  void open_etcd();
  void claim_key();
  void host_as_key_says();

  Start start_;
  Events events_;
  Resolver resolver_;
  net::steady_timer retry_;
  /// Until a store at the endpoint has answered; not begun when there is no limit.
  std::optional<RunningTimer> limit_ = {};
  /// The endpoint's addresses, if it is this machine.
  Addresses host_addresses_ = {};
  /// An attempt to reach the store has failed.
  bool has_failed_ = false;
  std::unique_ptr<StoreClient> client_ = {};
  std::shared_ptr<Connecting> connecting_ = {};
};

/// All places of the job are taken, or the coordinator was lost before the first round: the node asks again a
/// little later. Leads to Searching.
class AskingLater : public NodeState {
 public:
  AskingLater(NodeContext& node, std::function<void()> ask_again);

  const char* name() const override { return "waiting to ask again"; }
  void start() override;

 private:
  std::function<void()> ask_again_;
  net::steady_timer retry_;
};

}  // namespace acc::launcher
