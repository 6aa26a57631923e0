// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/background_save.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc::detail {

BackgroundSave::~BackgroundSave() {
  const bool unwinding = std::uncaught_exceptions() > 0;
  try {
    wait();
  } catch (const std::exception& error) {
    if (!unwinding) std::terminate();
    std::fprintf(stderr, "acc: a checkpoint was not saved: %s\n", error.what());
  }
}

void BackgroundSave::start(std::function<void()> save) {
  wait();
  const BlockedSignals inherited_by_the_thread;
  save_ = std::async(std::launch::async, std::move(save));
}

void BackgroundSave::wait() {
  if (save_.valid()) save_.get();
}

}  // namespace acc::detail
