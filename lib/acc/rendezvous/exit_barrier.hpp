// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "acc/store/store.hpp"

namespace acc::launcher {

/// torchrun's exit barrier: nodes whose workers ended well wait until those of all have. It opens
/// the store once more, since it waits; ends with this object.
class ExitBarrier {
 public:
  struct Options {
    /// Of all keys, as on the wire.
    std::string prefix = "/";
    int group_size = 1;
    /// How many of the group come with this call.
    int own = 1;
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
  };

  /// Calls `done` once, from the loop: true when all nodes came in time.
  ExitBarrier(const Store& store, Options options, std::function<void(bool all)> done);

 private:
  void connected();
  void finish(bool all);

  Options options_;
  std::function<void(bool)> done_;
  std::unique_ptr<Store> store_;
};

}  // namespace acc::launcher
