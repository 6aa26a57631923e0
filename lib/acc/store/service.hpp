// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/key_value.hpp"
#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/waits.hpp"

namespace acc::launcher {

/// A request, and how many keys have been dealt with: its own, or those that it is to list.
struct Work {
  Request request = {};
  std::size_t next_key = 0;
  /// Of `list_keys`: what was found so far, and the last of it.
  Replies listed = {};
  std::optional<std::string> last_listed = {};
};

/// What PyTorch's TCPStore answers to each request, without a socket: requests in, replies and wake-ups out.
class Service {
 public:
  enum class Outcome {
    done,
    /// Keys of it are left: the call is to be made again. Others may be served in between, so for them a
    /// request of more keys than one call deals with is more than one step.
    more,
    /// TCPStore has no answer to it (an `add` to what is not a number), or the writer has no right to it: the
    /// client's connection must end.
    refused,
  };

  /// What strangers may keep here, all of them together.
  explicit Service(std::size_t max_stranger_bytes = SIZE_MAX) : max_stranger_bytes_(max_stranger_bytes) {}

  /// Carries out `work`, but no more than `max_keys` of its keys, and adds its answer to `replies`.
  Outcome carry_out(ClientId client, Writer writer, Work& work, Replies& replies,
                    std::size_t max_keys = SIZE_MAX);

  /// `client` is gone: nothing of it remains but the keys that it set.
  void leave(ClientId client);

  /// Clears away what the long waits of clients that left have left behind, `max_keys` keys of it at most.
  /// True: there is more.
  bool sweep(std::size_t max_keys) { return waits_.sweep(max_keys); }

  /// Those whose `wait` or `barrier` has ended since the last call, in order: each must be sent kStopWaiting
  /// before anything else.
  std::vector<ClientId> take_woken() { return waits_.take_woken(); }

  void forget_except(const std::function<bool(std::string_view)>& kept) { data_.forget_except(kept); }

  /// Null when there is no such key.
  KeyValue::Value get(std::string_view key) const { return data_.get(key); }
  std::size_t keys() const { return data_.size(); }
  std::size_t waiting() const { return waits_.size(); }
  /// Memory that the wait of `client` takes, about.
  std::size_t wait_cost(ClientId client) const { return waits_.cost(client); }

 private:
  Outcome begin(ClientId client, Writer writer, Request& request, Replies& replies);
  Outcome change(Writer writer, Request& request, Replies& replies);
  Outcome handle_barrier(ClientId client, Writer writer, const Request& request, Replies& replies);
  Outcome handle_queue(Writer writer, Request& request, Replies& replies);
  Outcome handle_key(ClientId client, Writer writer, Work& work, Replies& replies);
  void finish(ClientId client, Op op, Replies& replies);
  Outcome list_keys(Work& work, Replies& replies, std::size_t max_keys) const;
  bool may_write(Writer writer, std::string_view key, std::size_t value_bytes) const;
  void written(const std::string& key);
  void end_turns(ClientId client, const std::string& popped);

  std::size_t max_stranger_bytes_;
  KeyValue data_;
  Waits waits_;
};

}  // namespace acc::launcher
