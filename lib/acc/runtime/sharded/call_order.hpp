// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "acc/runtime/comm/flat_transfer.hpp"
#include "acc/runtime/comm/process_group.hpp"

namespace acc::detail {

/// Checks that all processes do the same in the same order. Without it, processes that use the parts of a
/// model in different orders would wait for each other forever. Each tells the others what it begins, in a
/// message of a few bytes, and looks at theirs only when it has to wait anyway.
class CallOrder {
 public:
  using Describe = std::function<std::string(std::int64_t)>;

  /// `tag`: of the messages. `describe` returns what a process does, as in "gathers layer1", for errors.
  /// `max_parts`: of a call.
  CallOrder(std::shared_ptr<ProcessGroup> group, int tag, Describe describe, std::size_t max_parts);

  /// Tells the other processes that this one begins `call`, at least 0, and which of its parts it takes part
  /// in, and returns its number. Does not wait.
  std::int64_t announce(std::int64_t call, const std::vector<bool>& parts = {});

  /// Waits until the others have announced as many calls, up to this number. Throws Error{usage} on each
  /// process when one of them was another call.
  void require_same(std::int64_t number);

  /// The same, and returns the parts that any process has announced. To be called once for each call with
  /// parts.
  std::vector<bool> parts_of_all(std::int64_t number);

 private:
  struct Announced {
    std::int64_t call = 0;
    std::vector<bool> parts = {};
    /// A row for each process, its call and then its parts as bits, of which the others' arrive.
    at::Tensor calls = {};
    FlatTransfer transfer = {};
  };

  std::shared_ptr<ProcessGroup> group_;
  int tag_;
  Describe describe_;
  std::int64_t words_;  // of the parts
  std::int64_t announced_ = 0;
  std::deque<Announced> unchecked_ = {};
  // The parts of calls that were checked, by number.
  std::map<std::int64_t, std::vector<bool>> parts_ = {};
};

}  // namespace acc::detail
