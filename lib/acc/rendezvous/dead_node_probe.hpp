// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/store/connecting.hpp"
#include "acc/store/dialer.hpp"

namespace acc::launcher {

/// Tells which of several nodes have ended: their machines refuse connections to the ports at which they have
/// listened. Of a node that is silent, or whose machine is, nothing is said.
class DeadNodeProbe {
 public:
  /// `timeout`: of each attempt to connect. `on_ended` is called for each such node, never during start().
  DeadNodeProbe(net::io_context& loop, std::chrono::milliseconds timeout,
                std::function<void(const StoreAddress&)> on_ended);
  ~DeadNodeProbe();
  DeadNodeProbe(const DeadNodeProbe&) = delete;
  DeadNodeProbe& operator=(const DeadNodeProbe&) = delete;

  /// Connects to all nodes at once. Attempts of an earlier start are dropped.
  void start(const std::vector<StoreAddress>& nodes);
  /// `on_ended` is not called after this.
  void stop();

 private:
  void connect(const StoreAddress& node);

  net::io_context& loop_;
  std::chrono::milliseconds timeout_;
  std::function<void(const StoreAddress&)> on_ended_;
  std::vector<std::shared_ptr<Connecting>> attempts_ = {};
};

}  // namespace acc::launcher
