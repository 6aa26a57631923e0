// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/node_ports.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/store/server.hpp"

namespace acc::launcher {

/// A job of this machine alone: nobody to wait for, and the store at the plan's addresses and port or a free
/// one, for connections of this machine. The port is kept for the worker that serves it where acc does not.
class SingleNode : public Rendezvous {
 public:
  /// Binds the store's port at once, and keeps it. Throws Error when it cannot.
  SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan);

  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override { emit(JobDone{}); }
  void leave(const std::string& why, int code) override;

 private:
  Round round_ = {};
  /// Absent for a plain process that learns no rank, and where a worker serves the store.
  std::optional<StoreServer> store_ = {};
  std::optional<ReservedPort> workers_port_ = {};
  int restarts_ = 0;
};

}  // namespace acc::launcher
