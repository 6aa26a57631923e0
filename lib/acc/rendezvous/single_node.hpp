// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "acc/base/event_loop.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/node_ports.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/store/server.hpp"

namespace acc::launcher {

/// A job of one machine: rounds begin at once. Serves the store to this machine at the plan's addresses and
/// port, or a free port; where a worker serves the store, reserves the port for it.
class SingleNode : public Rendezvous {
 public:
  /// Binds the store's port at once, and keeps it. Throws Error when it cannot.
  SingleNode(net::io_context& loop, const LaunchPlan& plan);

  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override { emit(JobDone{}); }
  void leave(const std::string& reason, int code) override;

 private:
  Round round_ = {};
  /// Absent for a plain process without ranks, and where a worker serves the store.
  std::optional<StoreServer> store_ = {};
  std::optional<ReservedPort> workers_port_ = {};
  int restarts_ = 0;
  StallCount stall_;
};

}  // namespace acc::launcher
