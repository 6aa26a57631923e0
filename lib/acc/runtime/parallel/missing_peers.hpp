// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/parallel/explain_failure.hpp"

namespace acc::detail {

/// The time before the first notice, and between notices.
inline constexpr std::chrono::seconds kJoinNoticeAfter{10};

/// The key that each process sets in the store when it has connected to it.
std::string joined_key(int rank);

/// The line about ranks that have not joined, after `waited`: rank 0, whose store does not answer, when
/// `joined` is absent, else the ranks that are not in it. Empty when another process writes it: the lowest
/// rank that has joined does.
std::string join_notice(const WorkerEnv& worker, std::chrono::seconds waited,
                        const std::optional<std::vector<int>>& joined);

/// While it lives, a process that waits for the others of its job writes to standard error every ten seconds
/// which ranks it waits for.
class JoinWatch {
 public:
  using Store = c10::intrusive_ptr<c10d::Store>;

  /// `open_store` connects to the store, or throws within about a second; it is called on a thread.
  JoinWatch(const WorkerEnv& worker, std::function<Store()> open_store);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void write_notices();
  std::optional<std::vector<int>> joined();

  WorkerEnv worker_;
  std::function<Store()> open_store_;
  Store store_ = {};
  std::mutex mutex_ = {};
  std::condition_variable ended_ = {};
  bool ends_ = false;
  std::thread thread_ = {};
};

/// Finds the processes that are missing when a collective fails. Every process has one; its thread looks into
/// the store once a second, and when another process calls the roll, it answers with the number of
/// collectives that this one has begun and where it is, also while the program itself hangs.
class RollCall {
 public:
  /// `store` is not shared. `calls` counts the collectives begun, and is called on the thread.
  RollCall(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::function<std::uint64_t()> calls);
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Sets where this process is, as `in backward`.
  void set_place(std::string place);

  /// Asks all processes and waits for their answers, a few seconds at most. Nothing when the store is gone.
  /// The first result is kept, since processes that lose one of them end as well.
  const std::optional<PeerReport>& call();

 private:
  void answer_when_called();
  void answer();
  std::optional<PeerReport> ask();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::function<std::uint64_t()> calls_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::string place_ = "after joining";
  std::optional<std::optional<PeerReport>> result_ = {};
  std::thread thread_;
};

}  // namespace acc::detail
