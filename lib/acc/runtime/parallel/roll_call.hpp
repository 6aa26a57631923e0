// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "acc/runtime/parallel/collective_failure.hpp"

namespace c10d {
class Store;
}

namespace acc {

/// Tells which processes are missing when those of a job lose each other. Every process has one; its thread
/// looks into the store once a second, and when another process calls the roll, it answers how many
/// collectives this one has begun and where it is, also while the program itself hangs.
class RollCall {
 public:
  /// `store` is used by nobody else. `calls` counts the collectives begun, and is called on the thread.
  RollCall(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::function<std::uint64_t()> calls);
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Where this process is, as in `in backward`.
  void set_place(std::string place);

  /// Asks all and waits for their answers, a few seconds at most. Nothing when the store is gone. The first
  /// result stays: who is lost stays lost, and the others then leave as well.
  const std::optional<Roll>& call();

 private:
  void answer_when_called();
  void answer();
  std::optional<Roll> ask();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int size_;
  std::function<std::uint64_t()> calls_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::string place_ = "after joining";
  std::optional<std::optional<Roll>> result_ = {};
  std::thread thread_;
};

}  // namespace acc
