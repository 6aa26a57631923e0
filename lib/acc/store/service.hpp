// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/key_value.hpp"
#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/waits.hpp"

namespace acc {

/// What PyTorch's TCPStore answers to each request, without a socket: requests in, replies and wake-ups out.
class Service {
 public:
  /// Carries out one request and adds its answer to `replies`. False: TCPStore has no answer to it, and the
  /// client's connection must end (an `add` to what is not a number).
  bool handle(ClientId client, Request request, Replies& replies);

  /// `client` is gone: nothing of it remains but the keys that it set.
  void leave(ClientId client);

  /// Those whose `wait` or `barrier` has ended since the last call, in order: each must be sent kStopWaiting
  /// before anything else.
  std::vector<ClientId> take_woken() { return waits_.take_woken(); }

  void forget_except(const std::function<bool(std::string_view)>& kept) { data_.forget_except(kept); }

  std::size_t keys() const { return data_.size(); }
  std::size_t waiting() const { return waits_.size(); }

 private:
  bool change(Request request, Replies& replies);
  void read(const Request& request, Replies& replies);
  void handle_wait(ClientId client, Request request, Replies& replies);
  bool handle_barrier(ClientId client, const Request& request, Replies& replies);
  void handle_queue(Request request, Replies& replies);
  bool all_exist(const std::vector<std::string>& names) const;
  void written(const std::string& key);
  void end_turns(ClientId client, const std::string& popped);

  KeyValue data_;
  Waits waits_;
};

}  // namespace acc
