// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/store/server.hpp"

namespace acc {

/// The rendezvous of a job on one node: the agent serves the store on loopback, on a port that it keeps.
class SingleNode : public Rendezvous {
 public:
  /// Throws Error{system} when the plan's port is taken.
  SingleNode(boost::asio::io_context& loop, const LaunchPlan& plan);

  Round next_round() override;

 private:
  Round round_ = {};
  /// Absent for a plain process that learns no rank.
  std::optional<StoreServer> store_ = {};
  bool used_ = false;
};

}  // namespace acc
