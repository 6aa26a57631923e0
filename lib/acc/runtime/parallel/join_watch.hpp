// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "acc/base/worker_env.hpp"

namespace acc {

/// How long a process joins in silence, and between the lines that follow.
inline constexpr std::chrono::seconds kJoinNoticeAfter{10};

/// What each process sets in the store when it has found it.
std::string joined_key(int rank);

/// The line about those who have not come, after `waited`: rank 0, whose store does not answer, when
/// `joined` is absent, else the ranks that are not in it. Empty when another process tells it: the lowest
/// rank that is there does.
std::string join_notice(const WorkerEnv& worker, std::chrono::seconds waited,
                        const std::optional<std::vector<int>>& joined);

/// While it lives, a process that waits for the others of its job tells on standard error every ten seconds
/// whom it waits for.
class JoinWatch {
 public:
  using Store = c10::intrusive_ptr<c10d::Store>;

  /// `open_store` connects to the store, or throws within a second or so; it is called on a thread.
  JoinWatch(const WorkerEnv& worker, std::function<Store()> open_store);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void tell_while_waiting();
  std::optional<std::vector<int>> joined();

  WorkerEnv worker_;
  std::function<Store()> open_store_;
  Store store_ = {};
  std::mutex mutex_ = {};
  std::condition_variable ended_ = {};
  bool ends_ = false;
  std::thread thread_ = {};
};

}  // namespace acc
