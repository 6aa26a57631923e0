// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/runtime/parallel/flat_transfer.hpp"
#include "acc/runtime/parallel/process_group.hpp"

namespace acc::detail {

/// Checks that all processes do the same in the same order. Without it, processes that use the parts of a
/// model in different orders would wait for each other forever. Each tells the others what it begins, in a
/// message of 8 bytes, and looks at theirs only when it has to wait anyway.
class CallOrder {
 public:
  using Describe = std::function<std::string(std::int64_t)>;

  /// `tag`: of the messages. `describe` returns what a process does, as in "gathers layer1", for errors.
  CallOrder(std::shared_ptr<ProcessGroup> group, int tag, Describe describe);

  /// Tells the other processes that this one begins `call`, at least 0, and returns its number. Does not
  /// wait.
  std::int64_t announce(std::int64_t call);

  /// Waits until the others have announced as many calls, up to this number. Throws Error{usage} on each
  /// process when one of them was another call.
  void require_same(std::int64_t number);

 private:
  struct Announced {
    std::int64_t call = 0;
    /// The calls of all processes, of which the others' arrive.
    at::Tensor calls = {};
    FlatTransfer transfer = {};
  };

  std::shared_ptr<ProcessGroup> group_;
  int tag_;
  Describe describe_;
  std::int64_t announced_ = 0;
  std::deque<Announced> unchecked_ = {};
};

}  // namespace acc::detail
