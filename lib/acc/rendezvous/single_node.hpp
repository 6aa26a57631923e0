// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/rendezvous/reserved_port.hpp"
#include "acc/store/server.hpp"

namespace acc {

/// The rendezvous of a job on one node: the agent serves the store on loopback, on a port that it keeps,
/// or keeps that port for the worker that serves it.
class SingleNode : public Rendezvous {
 public:
  /// Throws Error{system} when the plan's port is taken.
  SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan);

  Round next_round() override;

 private:
  Round round_ = {};
  /// Absent for a plain process that learns no rank, and where a worker serves the store.
  std::optional<StoreServer> store_ = {};
  std::optional<ReservedPort> workers_port_ = {};
  bool used_ = false;
};

}  // namespace acc
