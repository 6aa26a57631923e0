// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_source.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>

#include <new>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"

// The function of the OpenMP runtime that LibTorch uses. Weak, because linking OpenMP here could load a
// second runtime.
extern "C" __attribute__((weak)) void omp_set_num_threads(int threads);

namespace acc::detail {
namespace {

// at::set_num_threads applies to the whole process, omp_set_num_threads to the calling thread.
void use_cores(int count) {
  if (omp_set_num_threads != nullptr) omp_set_num_threads(count);
}

}  // namespace

// at::get_num_threads comes first: LibTorch sets a thread's number when the thread first uses it, which would
// overwrite ours.
OneCore::OneCore() : before_(at::get_num_threads()) {
  use_cores(1);
}

OneCore::~OneCore() {
  use_cores(before_);
}

OrderedWorkers::OrderedWorkers(std::size_t threads, std::size_t ahead, std::size_t first, Make make)
    : make_(std::move(make)), ahead_(ahead), done_(ahead), next_(first), taken_(first) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { run(i); });
  } catch (const std::bad_alloc&) {
    end();
    throw;
  } catch (const std::system_error& error) {
    end();
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("only {} of {} threads could be started: {}", threads_.size(), threads,
                                     error.code().message()),
                 .where = "num_workers",
                 .hint = limit_hint(error.code().value())});
  }
}

OrderedWorkers::~OrderedWorkers() {
  end();
}

void OrderedWorkers::end() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OrderedWorkers::run(std::size_t worker) {
  pthread_setname_np(pthread_self(), "acc-data");
  const OneCore one_core;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || next_ >= end_ || next_ < taken_ + ahead_; });
    if (stop_ || next_ >= end_) return;
    const std::size_t index = next_++;
    lock.unlock();
    bool has_item = false;
    std::exception_ptr failure;
    try {
      has_item = make_(index, worker);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    // The first item that failed or does not exist is the end, even if a later one was found missing before.
    if (!has_item && index < end_) {
      end_ = index;
      failure_ = std::move(failure);
      work_.notify_all();
    }
    done_[index % ahead_] = true;
    ready_.notify_all();
  }
}

std::optional<std::size_t> OrderedWorkers::wait() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return at_end() || done_[taken_ % ahead_]; });
  if (!at_end()) return taken_ % ahead_;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::nullopt;
}

bool OrderedWorkers::is_ready() const {
  const std::scoped_lock lock(mutex_);
  return !at_end() && done_[taken_ % ahead_];
}

void OrderedWorkers::release() {
  {
    const std::scoped_lock lock(mutex_);
    done_[taken_ % ahead_] = false;
    ++taken_;
  }
  work_.notify_one();
}

}  // namespace acc::detail
