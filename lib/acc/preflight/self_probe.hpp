// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/plan/rendezvous_plan.hpp"
#include "acc/preflight/node_health.hpp"

namespace acc::launcher {

/// What the checks of a node need to know of its job.
struct NodeCheckJob {
  Round round = {};
  /// How often the job was started again.
  int attempt = 0;
  /// Of this node.
  int workers = 0;
  std::string log_folder = {};
  /// The name or address at which the nodes meet.
  std::string meeting_host = {};
  /// Of the workers.
  Environment environment = {};
};

/// Asks this machine everything that needs no other node. What does not answer within `limit` (a driver, a
/// disk of the network, a resolver) is named in the result, and the thread that waits for it stays behind.
NodeHealth probe_self(const NodeCheckJob& job, std::chrono::milliseconds limit);

}  // namespace acc::launcher
