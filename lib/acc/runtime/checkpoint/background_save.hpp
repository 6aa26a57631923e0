// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>

namespace acc::detail {

/// A save on a thread of its own, at most one at a time. exit() waits for it as the destructor does; _exit(),
/// quick_exit(), abort() and signals do not.
class BackgroundSave {
 public:
  BackgroundSave() = default;
  /// Waits for the save. If it fails, the program ends as by an exception that nobody catches: with
  /// std::terminate. While another exception passes, the error is written to standard error instead.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Starts `save` after the one before, see wait.
  void start(std::function<void()> save);

  /// Returns when no save is under way. Throws what the last one threw, once.
  void wait();

 private:
  std::shared_future<void> save_ = {};
};

}  // namespace acc::detail
