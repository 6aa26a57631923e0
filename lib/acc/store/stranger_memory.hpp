// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace acc::launcher {

/// What connections that need not be of the job hold in memory: half a request, a wait, answers that they do
/// not read. Together they stay below a limit, so that nobody can fill this process.
class StrangerMemory {
 public:
  using Id = std::uint64_t;

  explicit StrangerMemory(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// `id` holds `bytes` now. Returns those whose connections must end so that the rest is within the limit;
  /// they hold nothing any more. A request of the job is large for a moment only, and who waits for long
  /// holds little: so it is the one that has held much for longest that goes first, and where nobody holds
  /// much, the one that holds most.
  std::vector<Id> hold(Id id, std::size_t bytes);

  /// `id` is gone.
  void release(Id id);

  std::size_t total() const { return total_; }

 private:
  struct Holding {
    std::size_t bytes = 0;
    std::uint64_t since = 0;  // when it began to hold much; 0: it does not
  };

  Id first_to_go() const;

  std::size_t max_bytes_;
  std::size_t total_ = 0;
  std::uint64_t now_ = 0;
  std::unordered_map<Id, Holding> holdings_ = {};
};

}  // namespace acc::launcher
