// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "acc/base/files.hpp"

namespace acc::detail {

/// How processes of a machine come to share memory: the first one listens at an abstract unix socket, and
/// hands over the memory and a pidfd of each process as descriptors. That works wherever the processes reach
/// each other's socket, which is wherever they are in one network namespace, whatever their other namespaces
/// and file systems.
class Handover {
 public:
  /// Begins to listen: which process is the first is known later.
  Handover();

  /// For the others: the socket's name and a secret, without blanks; empty if it cannot listen.
  const std::string& address() const { return address_; }

  /// Takes part as `rank` of `size` processes, and connects to the first of them at `address`, to give it a
  /// pidfd of this process. False if that is not possible, as on another machine. On rank 0: whether it
  /// listens. Does not wait for anybody.
  bool connect(int rank, int size, const std::string& address);

  struct Shared {
    Descriptor memory = {};
    std::vector<Descriptor> processes = {};  ///< A pidfd of each rank's process.
  };

  /// After all have connected: rank 0 gives what its `create_memory` returns to the others, who return it and
  /// the pidfds. Throws std::runtime_error if another process is lost, does not answer in time, is one of
  /// another user, or failed here, and what `create_memory` throws. Ranks that wait for this one then fail,
  /// too.
  Shared exchange(const std::function<Descriptor()>& create_memory, std::chrono::milliseconds timeout);

 private:
  Shared give(Descriptor memory, std::chrono::milliseconds timeout);
  Shared take(std::chrono::milliseconds timeout);
  std::vector<Descriptor> accept_all(Shared& shared);

  int rank_ = 0;
  int size_ = 1;
  std::string address_ = {};
  Descriptor socket_ = {};
  Descriptor own_process_ = {};
};

}  // namespace acc::detail
