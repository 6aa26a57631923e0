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

namespace acc::launcher {

/// How an operation on a store ended.
enum class StoreOutcome {
  done,
  timed_out,  ///< a wait timed out
  closed,     ///< the store is lost; whether it handled the request is unknown
};

/// A key-value store of PyTorch's in which the agents of a job meet: a TCPStore (StoreClient) or a FileStore.
/// Keys are as they stand there: `/` and the user's key. Operations are carried out in the order they are
/// asked for. Handlers are called from the caller's event loop, never from within a call, and not after the
/// end of this object.
class Store {
 public:
  template <typename... Values>
  using Handler = std::function<void(StoreOutcome, Values...)>;
  using Done = Handler<>;
  /// Absent: at least one of the keys is missing.
  using Values = std::optional<std::vector<std::string>>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Called once, after the handlers of all pending operations, when the store is lost.
  virtual void on_closed(std::function<void()> closed) = 0;
  /// Ends it without calling any handler.
  virtual void close() = 0;
  /// The problem to report when the store is lost, with its address.
  virtual Problem loss() const = 0;
  /// A second connection to the same store, so that waits do not delay other operations. `opened` gets
  /// nothing when it can be used, else an Error{rendezvous}, by `deadline` at the latest.
  virtual std::unique_ptr<Store> open_again(std::chrono::steady_clock::time_point deadline,
                                            std::function<void(std::optional<Error>)> opened) const = 0;

  virtual void set(std::string key, std::string value, Done handler = {});
  virtual void multi_set(Pairs pairs, Done handler = {}) = 0;
  virtual void multi_get(std::vector<std::string> keys, Handler<Values> handler) = 0;
  /// Whether all of them exist.
  virtual void check(std::vector<std::string> keys, Handler<bool> handler) = 0;
  virtual void add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) = 0;
  /// What the key holds afterwards. It was stored if and only if that is `desired`: for a key that is missing
  /// a store answers `expected`, as if it were there.
  virtual void compare_set(std::string key, std::string expected, std::string desired,
                           Handler<std::string> handler) = 0;
  /// Whether there was such a key.
  virtual void delete_key(std::string key, Handler<bool> handler) = 0;
  /// Done when all `keys` exist.
  virtual void wait(std::vector<std::string> keys, std::chrono::milliseconds timeout, Done handler) = 0;

  /// The value, or absent.
  void get(std::string key, Handler<std::optional<std::string>> handler);
  /// The values of all `keys`, as soon as all exist. Other operations may come in between.
  void get_when_present(std::vector<std::string> keys, std::chrono::milliseconds timeout,
                        Handler<std::vector<std::string>> handler);
};

}  // namespace acc::launcher
