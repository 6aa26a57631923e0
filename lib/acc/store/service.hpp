// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/key_value.hpp"
#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/waits.hpp"

namespace acc::launcher {

/// A request and its progress, in keys: its own, or for `list_keys` the store's.
struct Work {
  Request request = {};
  std::size_t next_key = 0;
  /// Of `list_keys`: the reply so far, and its last key.
  Replies listed = {};
  std::optional<std::string> last_listed = {};
};

/// PyTorch's TCPStore without a socket: requests in, replies and wake-ups out.
class Service {
 public:
  enum class Outcome {
    done,
    /// Keys are left: call again. Other clients may be served in between, so a request of more than
    /// `max_keys` keys is not atomic for them.
    more,
    /// TCPStore has no reply to it (`add` to a value that is not a number), or the writer lacks the
    /// permission: the connection must be closed.
    refused,
  };

  /// `max_stranger_bytes`: what strangers together may store.
  explicit Service(std::size_t max_stranger_bytes = SIZE_MAX) : max_stranger_bytes_(max_stranger_bytes) {}

  /// Carries out `work`, at most `max_keys` of its keys, and adds the reply to `replies`.
  Outcome carry_out(ClientId client, Writer writer, Work& work, Replies& replies,
                    std::size_t max_keys = SIZE_MAX);

  /// `client` has disconnected: removes its waits. The keys that it set stay, and those that it set for its
  /// end (kAtEnd) appear.
  void leave(ClientId client);

  /// Cleans up at most `max_keys` keys of cancelled waits. Returns whether there are more.
  bool sweep(std::size_t max_keys) { return waits_.sweep(max_keys); }

  /// Clients whose `wait` or `barrier` has ended since the last call, in order: each must be sent
  /// kStopWaiting before anything else.
  std::vector<ClientId> take_woken() { return waits_.take_woken(); }

  void forget_except(const std::function<bool(std::string_view)>& kept) { data_.forget_except(kept); }

  /// Null when there is no such key.
  KeyValue::Value get(std::string_view key) const { return data_.get(key); }
  std::size_t keys() const { return data_.size(); }
  std::size_t waiting() const { return waits_.size(); }
  /// Approximate memory of the wait of `client`.
  std::size_t wait_cost(ClientId client) const { return waits_.cost(client); }

 private:
  Outcome begin(ClientId client, Writer writer, Request& request, Replies& replies);
  Outcome change(ClientId client, Writer writer, Request& request, Replies& replies);
  Outcome handle_barrier(ClientId client, Writer writer, const Request& request, Replies& replies);
  Outcome handle_queue(Writer writer, Request& request, Replies& replies);
  Outcome handle_key(ClientId client, Writer writer, Work& work, Replies& replies);
  void finish(ClientId client, Op op, Replies& replies);
  Outcome list_keys(Work& work, Replies& replies, std::size_t max_keys) const;
  bool may_write(Writer writer, std::string_view key, std::size_t value_bytes) const;
  void written(const std::string& key);
  void set_at_end(const std::string& key);
  void end_turns(ClientId client, const std::string& popped);

  std::size_t max_stranger_bytes_;
  KeyValue data_;
  Waits waits_;
  std::multimap<ClientId, std::string> at_end_;
};

}  // namespace acc::launcher
