// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace acc::launcher {

struct StaticBackendOptions {
  /// The store of node 0 as workers are to reach it.
  StoreAddress master = {};
  std::string run_id = "none";
  int num_nodes = 1;
  /// For all nodes to come.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(900);
  /// How often to look who is missing, for people to read.
  std::chrono::milliseconds look = std::chrono::seconds(1);
};

/// torchrun's static rendezvous: nodes know their ranks, and meet in the store of node 0, whoever hosts it.
/// Nobody notices that a node is gone, so on_change never comes, and on_closed after close() alone; and since
/// each node restarts its workers alone, nobody may take from the store what other nodes have set.
class StaticBackend : public RendezvousBackend {
 public:
  /// `store` is connected to node 0's store or about to be, and outlives the backend. The backend takes its
  /// on_closed.
  StaticBackend(boost::asio::io_context& loop, Store& store, StaticBackendOptions options, Events events);
  ~StaticBackend() override;

  void add(const OwnNode& node) override;
  void remove(const OwnNode& node) override;
  void next_round() override;
  void close() override;
  void finish(std::function<void()> done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
