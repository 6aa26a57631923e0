// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "acc/store/client.hpp"

namespace acc {

/// torchrun's exit barrier: nodes whose workers ended well wait until those of all have. On a connection of
/// its own; ends with this object.
class ExitBarrier {
 public:
  struct Options {
    StoreAddress store = {};
    /// Of all keys, as on the wire.
    std::string prefix = "/";
    int group_size = 1;
    /// How many of the group come with this call.
    int own = 1;
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
  };

  /// Calls `done` once, from the loop: true when all nodes came in time.
  ExitBarrier(boost::asio::io_context& loop, Options options, std::function<void(bool all)> done);

 private:
  void connected();
  void finish(bool all);

  Options options_;
  std::function<void(bool)> done_;
  StoreClient client_;
};

}  // namespace acc
