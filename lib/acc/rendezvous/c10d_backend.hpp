// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "acc/plan/rendezvous_plan.hpp"
#include "acc/rendezvous/c10d_machine.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace acc::launcher {

struct C10dBackendOptions {
  std::string run_id = "none";
  C10dMachine::Settings machine = {};
  /// Of one answer of the node with rank 0.
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
  TorchAgents agents = TorchAgents::v2_6;
  /// Otherwise worker 0 serves the workers' store, as with torch 2.4.
  bool agent_serves = true;
  /// The rendezvous store as all nodes know it: where workers meet with torch 2.5. Absent: it is a file.
  std::optional<StoreAddress> endpoint = {};
  /// How often to look at the state; torchrun's agents look as often.
  std::chrono::milliseconds poll = std::chrono::seconds(1);
};

/// torchrun's c10d rendezvous: nodes of torch 2.4 to 2.15 and of acc meet in a TCPStore,
/// whoever hosts it, or in a FileStore.
///
/// When an own node is rank 0, its address is told in every round: an agent that came later reads it there.
/// When a node of torchrun is, which tells it once only, the rounds before are searched for it.
class C10dBackend : public RendezvousBackend {
 public:
  /// `store` is connected or about to be, and outlives the backend. The backend takes its on_closed.
  C10dBackend(boost::asio::io_context& loop, Store& store, C10dBackendOptions options, Events events);
  ~C10dBackend() override;

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
