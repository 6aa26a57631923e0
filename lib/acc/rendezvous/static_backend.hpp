// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

struct StaticBackendOptions {
  /// Where workers reach the store of node 0.
  StoreAddress master = {};
  std::string run_id = "none";
  int num_nodes = 1;
  /// Timeout for all nodes to join.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(900);
  /// How often to check which nodes are missing, for the user.
  std::chrono::milliseconds poll_interval = std::chrono::seconds(1);
};

/// torchrun's static rendezvous: nodes know their ranks, and meet in the store of node 0, whoever hosts it.
/// It does not notice that a node is gone, so on_change is never called, and on_closed only after close().
/// Since each node restarts its workers alone, no node may delete what others have set.
class StaticBackend : public RendezvousBackend {
 public:
  /// `store` is connected to node 0's store or about to be, and outlives the backend, which sets its
  /// on_closed handler.
  StaticBackend(net::io_context& loop, Store& store, StaticBackendOptions options, Events events);
  ~StaticBackend() override;

  void add(const OwnNode& node) override;
  void remove(const OwnNode& node) override;
  void next_round() override;
  void close() override;
  void finish(std::function<void()> on_done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
