// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "acc/base/own_addresses.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// Looks up names beside the loop, each in a thread of its own, which stays behind if nobody waits any more:
/// a lookup can block for minutes, and holds up neither another one nor the end of the process. There is one
/// at a time for each name in the process.
class Resolver {
 public:
  using Done = std::function<void(const HostLookup&)>;
  using LookUp = std::function<HostLookup(const std::string& host)>;

  explicit Resolver(net::io_context& loop, LookUp look_up = net::look_up);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `done` once, never during the call. Numeric addresses are known at once. Cancels an earlier call.
  void resolve(const std::string& host, Done done);
  /// No handler is called after this.
  void cancel();

 private:
  struct Waiter;

  net::io_context& loop_;
  LookUp look_up_;
  std::shared_ptr<Waiter> waiter_ = {};
};

}  // namespace acc::launcher
