// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "acc/base/worker_env.hpp"
#include "acc/runtime/comm/explain_failure.hpp"

namespace c10d {
class Work;
}

namespace acc::detail {

/// The time before the first notice, and between notices.
inline constexpr std::chrono::seconds kJoinNoticeAfter{10};

/// The key that each process sets in the store when it has connected to the store.
std::string joined_key(int rank);

/// The line to print after waiting for `waited`, with the ranks that have not joined: those that are not in
/// `joined`, or rank 0 if `joined` is absent because its store does not answer. Empty if all have joined.
std::string join_notice(const WorkerEnv& worker, std::chrono::seconds waited,
                        const std::optional<std::vector<int>>& joined);

/// The notices of one process. Only the first that asks the store writes them: it is not asked about each of
/// thousands of ranks by each of thousands of processes.
class JoinNotices {
 public:
  explicit JoinNotices(WorkerEnv worker) : worker_(std::move(worker)) {}

  /// The line after waiting for `waited`; empty where another process writes, or all have joined.
  std::string next(c10d::Store& store, std::chrono::seconds waited);
  std::string without_store(std::chrono::seconds waited) const;

 private:
  WorkerEnv worker_;
  std::optional<bool> writes_ = {};
};

/// While this object exists, a process that waits for the others of its job writes to standard error every
/// ten seconds for which ranks it waits: one of them all, or each whose store does not answer.
class JoinWatch {
 public:
  using Store = c10::intrusive_ptr<c10d::Store>;

  /// `open_store` connects to the store or throws within about a second; it is called on another thread.
  JoinWatch(const WorkerEnv& worker, std::function<Store()> open_store);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void write_notices();
  std::string notice(std::chrono::seconds waited);

  JoinNotices notices_;
  std::function<Store()> open_store_;
  Store store_ = {};
  std::mutex mutex_ = {};
  std::condition_variable ended_ = {};
  bool ends_ = false;
  std::thread thread_ = {};
};

/// Where a process is.
struct PeerPosition {
  std::uint64_t calls = 0;  ///< The number of collectives that it has begun.
  std::string phase = {};   ///< Such as `in forward`.
};

/// Whether one of `size` processes has gone past the comparison in which this one, at `self`, waits: it has
/// begun as many collectives, and is not in a comparison of this kind. Only if all have answered: one that
/// has not may be suspended, and keep this process waiting though another has got its part.
bool others_are_elsewhere(const PeerPosition& self, const std::map<int, PeerPosition>& peers, int size);

/// Returns when the comparison is over or has failed. Throws DifferentCalls when it is not over after three
/// seconds, or 6, 12, ... (the others may be late), and `others_are_elsewhere` says so. Time in which this
/// process is suspended does not count.
void wait_or_find_others_elsewhere(c10d::Work& work, const std::function<bool()>& others_are_elsewhere);

/// Another process has gone past a comparison.
struct DifferentCalls : std::runtime_error {
  DifferentCalls() : std::runtime_error("the processes do not make the same calls") {}
};

/// Finds the processes that are missing when a collective fails. Every process has a PeerCheck, whose thread
/// polls the store once a second. When another process checks its peers, the thread answers with the number
/// of collectives that this process has begun and where it is, even while the program itself hangs. Of one
/// that ends the launcher's store answers.
class PeerCheck {
 public:
  /// `store` must not be used elsewhere. `calls` returns the number of collectives begun; the thread calls
  /// it.
  PeerCheck(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::function<std::uint64_t()> calls);
  ~PeerCheck();
  PeerCheck(const PeerCheck&) = delete;
  PeerCheck& operator=(const PeerCheck&) = delete;

  /// Sets where this process is, such as `in backward`.
  void set_phase(std::string phase);

  /// Asks all processes and waits until they answer or have ended, a few seconds at most. Returns nothing if
  /// the store is gone. Later calls return the first result, since processes that notice a lost one end as
  /// well.
  const std::optional<PeerReport>& report();

  /// Asks all processes, as often as it is called, and returns where those are that answer within seconds.
  std::map<int, PeerPosition> positions();
  PeerPosition own_position();

 private:
  void answer_when_asked();
  void answer(const std::string& key);
  std::map<int, PeerPosition> wait_for_answers(const std::function<std::string(int rank)>& key);
  std::optional<PeerReport> ask();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::function<std::uint64_t()> calls_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::string phase_ = "after joining";
  std::int64_t answered_ = 0;
  std::optional<std::optional<PeerReport>> result_ = {};
  std::thread thread_;
};

}  // namespace acc::detail
