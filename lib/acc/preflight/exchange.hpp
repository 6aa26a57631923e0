// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "acc/preflight/node_health.hpp"
#include "acc/preflight/self_probe.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What the checks came to, as this node is told.
struct NodeCheckResult {
  bool passed = true;
  /// Nothing was found that the user of this node must hear of.
  bool clean = true;
  /// Why no worker is to be started, in one line; empty: passed.
  std::string summary = {};
  /// For the user of this node: on rank 0 the table, else the warnings about this node.
  std::string text = {};
  /// Everything, on rank 0.
  std::string json = {};

  bool operator==(const NodeCheckResult&) const = default;
};

/// How long the nodes wait for each other.
struct ExchangeLimits {
  /// For what a node finds out about itself.
  std::chrono::milliseconds self = std::chrono::seconds(20);
  /// Beyond the time that a step takes by itself.
  std::chrono::milliseconds step = std::chrono::seconds(10);
  /// For the transfers of a node whose partner does not come to either direction, or is late.
  std::chrono::milliseconds measuring = std::chrono::seconds(20);
  /// For those that have yet to read that the job ends. The agent of rank 0 soon gives up waiting for its
  /// result then (kMaxWaitForCause of launch/agent.cpp).
  std::chrono::milliseconds refusal = std::chrono::milliseconds(500);
};

/// Judges a job of one node, which asked itself for so long.
NodeCheckResult check_alone(NodeHealth health, std::chrono::duration<double> took);

/// Checks all nodes of the round, together: each calls it, with the time at which it began, and publishes in
/// the store of the round what it has found out (its `health`) and measured. Rank 0 collects it, judges and
/// publishes the findings; at the end it removes all keys from the store. Whoever does not come in time, or
/// sends something else than this version of acc, is named in them, and not waited for again.
boost::asio::awaitable<NodeCheckResult> check_together(boost::asio::io_context& loop, Store& store,
                                                       const NodeCheckJob& job, NodeHealth health,
                                                       ExchangeLimits limits,
                                                       std::chrono::steady_clock::time_point began);

}  // namespace acc::launcher
