// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "acc/runtime/comm/cpu/memory_group.hpp"

namespace c10d {
class Backend;
}

namespace acc::detail {

/// An operation of processes on several machines, as each machine's first rank does it.
struct JobOperation {
  Collective inside = {};                               ///< Of the machine's ranks, in their shared memory.
  std::function<void(c10d::Backend& leaders)> outside;  ///< Of the leaders of all machines; throws.
  Collective back = {};                                 ///< Of the machine's ranks: gives them the result.
};

/// The first rank of a machine in a job on several ones. The other ranks begin `inside` and `back` of each
/// operation one after the other; this one does what belongs between them, an operation at a time, on a
/// thread of its own.
class MachineLeader {
 public:
  /// `memory` is null if the machine has one rank; `leaders` has one rank for each machine.
  MachineLeader(std::shared_ptr<MemoryGroup> memory, c10::intrusive_ptr<c10d::Backend> leaders);
  /// Leaves both groups: others that still need this rank fail. Not on its own thread, see OffThreadDelete.
  ~MachineLeader();
  MachineLeader(const MachineLeader&) = delete;
  MachineLeader& operator=(const MachineLeader&) = delete;

  /// Whether this is called on its thread.
  bool is_own_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

  /// `back.done` is called at the end or with what failed, on the thread. After a failure everything fails.
  void begin(JobOperation operation);

 private:
  void run_thread();
  void run(JobOperation operation);
  void fail(const std::exception_ptr& failure);

  std::shared_ptr<MemoryGroup> memory_;
  c10::intrusive_ptr<c10d::Backend> leaders_;
  std::exception_ptr failure_ = {};

  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  std::deque<JobOperation> operations_ = {};
  bool ends_ = false;
  std::thread thread_ = {};
};

}  // namespace acc::detail
