// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace acc::launcher {

/// Callbacks of an object that may end before they are called. A callback that it has wrapped does nothing
/// after the guard's end, or after reset(): a timer that is cancelled may have expired already, and its
/// handler runs all the same.
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
