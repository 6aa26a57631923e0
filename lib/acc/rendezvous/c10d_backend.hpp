// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/plan/rendezvous_plan.hpp"
#include "acc/rendezvous/c10d_machine.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

struct C10dBackendOptions {
  std::string run_id = "none";
  C10dMachine::Settings machine = {};
  /// Timeout of one reply of the node with rank 0.
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
  TorchAgents agents = TorchAgents::v2_6;
  /// The agent serves the workers' store; otherwise worker 0 does, as with torch 2.4.
  bool agent_serves = true;
  /// Address of the rendezvous store as all nodes know it; with torch 2.5 workers use it too. Absent if it is
  /// a file.
  std::optional<StoreAddress> endpoint = {};
  /// Added to the `local_id` of own nodes. torchrun knows a node by its address, its process id and this
  /// number, and counts from 0: the nodes of two containers can be alike otherwise.
  std::int64_t first_local_id = 0;
  /// How often to read the state; the same as torchrun's agents.
  std::chrono::milliseconds poll_interval = std::chrono::seconds(1);
};

/// torchrun's c10d rendezvous: nodes of torch 2.4 to 2.15 and of acc meet in a TCPStore, whoever hosts it, or
/// in a FileStore.
///
/// If one of our nodes is rank 0, its address is written in every round, where agents that come later read
/// it. torchrun writes its address only once, so earlier rounds are searched for it.
class C10dBackend : public RendezvousBackend {
 public:
  /// `store` is connected or about to be, and outlives the backend, which sets its on_closed handler.
  C10dBackend(net::io_context& loop, Store& store, C10dBackendOptions options, Events events);
  ~C10dBackend() override;

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
