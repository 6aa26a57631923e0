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
#include "acc/store/dialer.hpp"

namespace boost::asio {
class io_context;
}

namespace acc {

/// How an operation on a store ended.
enum class StoreOutcome {
  done,
  timed_out,  ///< a wait was in vain
  closed,     ///< the connection is lost, and whether the store took the request is not known
};

/// A client of PyTorch's TCPStore (torch 2.4 to 2.15, libuv and legacy) or of StoreServer, on the caller's
/// event loop. Operations are carried out in the order they are asked for, each when the one before it is
/// answered, so a wait holds up what comes after it. Keys are as on the wire: TCPStore's own are `/` and the
/// user's key. Handlers are called from the loop, never from within a call, and not after the client's end.
class StoreClient {
 public:
  template <typename... Values>
  using Handler = std::function<void(StoreOutcome, Values...)>;
  using Done = Handler<>;
  /// Absent: at least one of the keys is missing.
  using Values = std::optional<std::vector<std::string>>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  /// A store that leaves a request other than a wait unanswered for `patience` counts as lost.
  explicit StoreClient(boost::asio::io_context& loop,
                       std::chrono::milliseconds patience = std::chrono::seconds(60));
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  /// Tries until `deadline`, and tells `failed` why each try was in vain. `connected` gets nothing when a
  /// store answers, else an Error{rendezvous} with address and reason. Operations may be asked for before.
  void connect(const StoreAddress& address, std::chrono::steady_clock::time_point deadline,
               std::function<void(const std::string& why)> failed,
               std::function<void(std::optional<Error>)> connected);

  /// Called once, after the handlers of all pending operations, when the connection is lost.
  void on_closed(std::function<void()> closed);

  /// Ends the connection without calling any handler.
  void close();
  bool connected() const;
  /// As given to connect().
  const StoreAddress& address() const;

  void set(std::string key, std::string value, Done handler = {});
  void multi_set(Pairs pairs, Done handler = {});
  void append(std::string key, std::string bytes, Done handler = {});
  /// The value, or absent.
  void get(std::string key, Handler<std::optional<std::string>> handler);
  void multi_get(std::vector<std::string> keys, Handler<Values> handler);
  /// Whether all of them exist.
  void check(std::vector<std::string> keys, Handler<bool> handler);
  void add(std::string key, std::int64_t delta, Handler<std::int64_t> handler);
  /// What the key holds afterwards. It was stored if and only if that is `desired`: for a key that is missing
  /// a store answers `expected`, as if it were there.
  void compare_set(std::string key, std::string expected, std::string desired, Handler<std::string> handler);
  /// Whether there was such a key.
  void delete_key(std::string key, Handler<bool> handler);
  void num_keys(Handler<std::int64_t> handler);
  /// torch 2.10 and later; older servers hang up.
  void list_keys(Handler<std::vector<std::string>> handler);

  /// Done when all `keys` exist. torch's server may say so too early when queues are in use;
  /// get_when_present() does not believe it.
  void wait(std::vector<std::string> keys, std::chrono::milliseconds timeout, Done handler);
  /// The values of all `keys`, as soon as all exist. Other operations may come in between.
  void get_when_present(std::vector<std::string> keys, std::chrono::milliseconds timeout,
                        Handler<std::vector<std::string>> handler);

  /// torch 2.8 and later with libuv; other servers hang up.
  void queue_push(std::string queue, std::string value, Done handler = {});
  /// Absent when the queue is empty: it does not wait.
  void queue_pop(std::string queue, Handler<std::optional<std::string>> handler);
  void queue_len(std::string queue, Handler<std::int64_t> handler);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc
