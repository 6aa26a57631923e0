// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/background_save.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc::detail {
namespace {

// The saves that nobody has waited for. exit() does not destroy what is on the stack of main, as an
// Accelerator, but ends the threads.
struct UnderWay {
  std::mutex mutex = {};
  std::map<const BackgroundSave*, std::shared_future<void>> saves = {};
};

// Never destroyed: used until the process has ended.
UnderWay& under_way() {
  static UnderWay& saves = *new UnderWay;
  return saves;
}

// A thread that saves and calls exit() must not wait for itself.
thread_local bool is_saving = false;

// Calls `wait`. Its error ends the program, unless an exception does that already.
void finish(const std::function<void()>& wait) noexcept {
  const bool unwinding = std::uncaught_exceptions() > 0;
  try {
    wait();
  } catch (const std::exception& error) {
    if (!unwinding) std::terminate();
    std::fprintf(stderr, "acc: a checkpoint was not saved: %s\n", error.what());
  }
}

void wait_at_exit() {
  if (is_saving) return;
  const auto saves = [] {
    const std::lock_guard lock(under_way().mutex);
    return under_way().saves;
  }();
  for (const auto& [owner, save] : saves) finish([&pending = save] { pending.get(); });
}

}  // namespace

BackgroundSave::~BackgroundSave() {
  finish([this] { wait(); });
}

void BackgroundSave::start(std::function<void()> save) {
  wait();
  [[maybe_unused]] static const int registered = std::atexit(wait_at_exit);
  const BlockedSignals inherited_by_the_thread;
  save_ = std::async(std::launch::async, [save = std::move(save)] {
    is_saving = true;
    save();
  });
  const std::lock_guard lock(under_way().mutex);
  under_way().saves[this] = save_;
}

void BackgroundSave::wait() {
  if (!save_.valid()) return;
  const std::shared_future<void> save = std::exchange(save_, {});
  save.wait();
  {
    const std::lock_guard lock(under_way().mutex);
    under_way().saves.erase(this);
  }
  save.get();
}

}  // namespace acc::detail
