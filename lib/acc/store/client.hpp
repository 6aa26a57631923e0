// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/store/dialer.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// A client of PyTorch's TCPStore (torch 2.4 to 2.15, libuv and legacy) or of StoreServer, on the caller's
/// event loop. Operations run in order, each after the reply to the one before, so a wait delays the next
/// ones. Keys are as on the wire: `/` and the user's key of a TCPStore. Handlers are called from the event
/// loop, never during a call, and not after the client is destroyed.
class StoreClient : public Store {
 public:
  /// A store that does not reply within `timeout`, waits excepted, counts as lost.
  explicit StoreClient(net::io_context& loop, std::chrono::milliseconds timeout = std::chrono::seconds(60));
  ~StoreClient() override;

  /// Tries to connect until `deadline`; calls `failed` with the reason of each failed attempt, and
  /// `connected` with nullopt when a store answers, else with an Error{rendezvous} with address and reason.
  /// Operations may be started before.
  void connect(const StoreAddress& address, RunningClock::time_point deadline,
               std::function<void(const std::string& reason)> failed,
               std::function<void(std::optional<Error>)> connected);

  void on_closed(std::function<void()> closed) override;
  Problem loss() const override;
  std::unique_ptr<Store> open_again(RunningClock::time_point deadline,
                                    std::function<void(std::optional<Error>)> opened) const override;

  void close() override;
  bool connected() const;
  /// As given to connect().
  const StoreAddress& address() const;

  void set(std::string key, std::string value, Done handler = {}) override;
  void multi_set(Pairs pairs, Done handler = {}) override;
  void multi_get(std::vector<std::string> keys, Handler<Values> handler) override;
  void check(std::vector<std::string> keys, Handler<bool> handler) override;
  void add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) override;
  void compare_set(std::string key, std::string expected, std::string desired,
                   Handler<std::string> handler) override;
  void delete_key(std::string key, Handler<bool> handler) override;

  /// torch's server may report keys too early when queues are in use; get_when_present() checks again.
  void wait(std::vector<std::string> keys, std::chrono::milliseconds timeout, Done handler) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
