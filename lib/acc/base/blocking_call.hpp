// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "acc/base/detached_thread.hpp"

namespace acc {

/// A call that may block for ever, in a thread of its own. Who has its result knows that the thread has
/// ended, too, and may fork: a child of a process with several threads inherits the locks that the others
/// hold. A thread without a result stays behind, and nobody waits for it, not even the end of the process.
/// The call owns what it uses.
template <typename Result>
class BlockingCall {
 public:
  /// Throws std::system_error if there is no thread.
  explicit BlockingCall(std::function<Result()> call) {
    auto task = std::make_shared<std::packaged_task<Result()>>(std::move(call));
    result_ = task->get_future();
    thread_ = start_thread([task] { (*task)(); });
  }
  ~BlockingCall() {
    if (thread_.joinable()) thread_.detach();
  }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  /// Is called until there is a result. Absent: the call does not return before the deadline. Throws what the
  /// call threw.
  std::optional<Result> result(std::chrono::steady_clock::time_point deadline) {
    if (result_.wait_until(deadline) != std::future_status::ready) return std::nullopt;
    thread_.join();
    return result_.get();
  }

 private:
  std::future<Result> result_;
  std::thread thread_;
};

}  // namespace acc
