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
#include "acc/base/running_clock.hpp"

namespace acc::launcher {

/// How an operation on a store ended.
enum class StoreOutcome {
  done,
  timed_out,  ///< a wait timed out
  closed,     ///< the store is lost; whether it handled the request is unknown
};

/// A key-value store of PyTorch in which the agents of a job meet: a TCPStore (StoreClient) or a FileStore.
/// Keys are as stored: `/` and the user's key. Operations run in order. Handlers are called from the caller's
/// event loop, never during a call, and not after this object is destroyed.
class Store {
 public:
  template <typename... Values>
  using Handler = std::function<void(StoreOutcome, Values...)>;
  using Done = Handler<>;
  /// Absent if any of the keys is missing.
  using Values = std::optional<std::vector<std::string>>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Called once, after the handlers of all pending operations, when the store is lost.
  virtual void on_closed(std::function<void()> closed) = 0;
  /// Closes the connection without calling any handler.
  virtual void close() = 0;
  /// The problem to report when the store is lost, with its address.
  virtual Problem loss() const = 0;
  /// A second connection to the same store, so that waits do not delay other operations. Calls `opened` with
  /// nullopt when it can be used, else with an Error{rendezvous}, by `deadline` at the latest.
  virtual std::unique_ptr<Store> open_again(RunningClock::time_point deadline,
                                            std::function<void(std::optional<Error>)> opened) const = 0;

  virtual void set(std::string key, std::string value, Done handler = {});
  virtual void multi_set(Pairs pairs, Done handler = {}) = 0;
  virtual void multi_get(std::vector<std::string> keys, Handler<Values> handler) = 0;
  /// Whether all of them exist.
  virtual void check(std::vector<std::string> keys, Handler<bool> handler) = 0;
  virtual void add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) = 0;
  /// Passes on what the key holds afterwards: `desired` if and only if it was stored. For a missing key a
  /// store replies `expected`.
  virtual void compare_set(std::string key, std::string expected, std::string desired,
                           Handler<std::string> handler) = 0;
  /// Whether there was such a key.
  virtual void delete_key(std::string key, Handler<bool> handler) = 0;
  /// Ends when all `keys` exist.
  virtual void wait(std::vector<std::string> keys, std::chrono::milliseconds timeout, Done handler) = 0;

  /// The value, or absent.
  void get(std::string key, Handler<std::optional<std::string>> handler);
  /// Waits until all `keys` exist, and passes on their values. Other operations may run in between.
  void get_when_present(std::vector<std::string> keys, std::chrono::milliseconds timeout,
                        Handler<std::vector<std::string>> handler);
};

}  // namespace acc::launcher
