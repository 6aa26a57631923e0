// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace acc::launcher {

/// Wraps callbacks of an object that may be destroyed before they are called. A wrapped callback does nothing
/// once the guard is destroyed or reset: the handler of a cancelled timer may be queued already, and runs all
/// the same.
class CallbackGuard {
 public:
  template <typename Callback>
  auto operator()(Callback callback) const {
    return [current = std::weak_ptr<const bool>(current_), callback = std::move(callback)](auto&&... values) {
      if (!current.expired()) callback(std::forward<decltype(values)>(values)...);
    };
  }

  /// Drops all callbacks that were wrapped so far.
  void reset() { current_ = std::make_shared<const bool>(true); }

 private:
  std::shared_ptr<const bool> current_ = std::make_shared<const bool>(true);
};

}  // namespace acc::launcher
