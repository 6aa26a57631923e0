// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/machine_leader.hpp"

#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc::detail {

MachineLeader::MachineLeader(std::shared_ptr<MemoryGroup> memory, c10::intrusive_ptr<c10d::Backend> leaders)
    : memory_(std::move(memory)), leaders_(std::move(leaders)) {
  const BlockedSignals inherited_by_the_thread;
  thread_ = std::thread([this] { run_thread(); });
}

MachineLeader::~MachineLeader() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (memory_) memory_->leave("the process group was destroyed");
  thread_.join();
}

void MachineLeader::begin(JobOperation operation) {
  {
    const std::scoped_lock lock(mutex_);
    operations_.push_back(std::move(operation));
  }
  changed_.notify_one();
}

void MachineLeader::run_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !operations_.empty(); });
    if (operations_.empty()) return;
    JobOperation operation = std::move(operations_.front());
    operations_.pop_front();
    lock.unlock();
    run(std::move(operation));
    lock.lock();
  }
}

void MachineLeader::run(JobOperation operation) {
  try {
    if (failure_) std::rethrow_exception(failure_);
    if (memory_) memory_->wait(memory_->begin(std::move(operation.inside)), std::nullopt);
    operation.outside(*leaders_);
  } catch (const std::exception&) {
    fail(std::current_exception());
    operation.back.done(failure_);
    return;
  }
  if (memory_) {
    memory_->begin(std::move(operation.back));
  } else {
    operation.back.done(nullptr);
  }
}

// Leaves both groups, so that ranks here and on the other machines do not wait for this one.
void MachineLeader::fail(const std::exception_ptr& failure) {
  if (failure_) return;
  failure_ = failure;
  if (memory_) memory_->leave("the leaders' operation failed");
  leaders_.reset();
}

}  // namespace acc::detail
